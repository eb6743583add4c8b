// Correct alternative: multiply-adds without tensor cores, 4 x 4 gates and 4 x 4 ups per thread
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }
__device__ float gated(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// x: [rows, inner]   gate_weight, up_weight: [hidden, inner]   out: [rows, hidden]
template <typename T>
__global__ void fused_kernel(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int inner,
                             int hidden) {
    __shared__ float a[16][65], g[16][65], u[16][65];  // [k][row or feature], padded
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float gate[4][4] = {}, up[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = k0 + tx;
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + ty + 16 * i, feature = feature0 + ty + 16 * i;
            const bool there = feature < hidden && k < inner;
            a[tx][ty + 16 * i] = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
            g[tx][ty + 16 * i] = there ? (float)gate_weight[(size_t)feature * inner + k] : 0.0f;
            u[tx][ty + 16 * i] = there ? (float)up_weight[(size_t)feature * inner + k] : 0.0f;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) {
                    gate[i][j] += a[kk][ty + 16 * i] * g[kk][tx + 16 * j];
                    up[i][j] += a[kk][ty + 16 * i] * u[kk][tx + 16 * j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < hidden) put(out + (size_t)row * hidden + feature, gated(gate[i][j], up[i][j]));
        }
    }
}

template <typename T>
void linear_swiglu(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int inner, int hidden,
                   cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const dim3 grid((hidden + 63) / 64, (rows + 63) / 64);
    fused_kernel<<<grid, 256, 0, stream>>>(x, gate_weight, up_weight, out, rows, inner, hidden);
}
