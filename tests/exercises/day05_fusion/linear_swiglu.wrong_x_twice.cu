// Wrong: one kernel, but it reads the tiles of x once for each product
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
    __shared__ float a[16][65], b[16][65];  // [k][row or feature], padded
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[2][4][4] = {};
    for (int product = 0; product < 2; ++product) {
        const T* weight = product == 0 ? gate_weight : up_weight;
        for (int k0 = 0; k0 < inner; k0 += 16) {
            const int k = k0 + tx;
            for (int i = 0; i < 4; ++i) {
                const int row = row0 + ty + 16 * i, feature = feature0 + ty + 16 * i;
                a[tx][ty + 16 * i] = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
                b[tx][ty + 16 * i] = feature < hidden && k < inner ? (float)weight[(size_t)feature * inner + k] : 0.0f;
            }
            __syncthreads();
            for (int kk = 0; kk < 16; ++kk) {
                for (int i = 0; i < 4; ++i) {
                    for (int j = 0; j < 4; ++j) sum[product][i][j] += a[kk][ty + 16 * i] * b[kk][tx + 16 * j];
                }
            }
            __syncthreads();
        }
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < hidden) {
                put(out + (size_t)row * hidden + feature, gated(sum[0][i][j], sum[1][i][j]));
            }
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

extern "C" void linear_swiglu_f16(const __half* x, const __half* gate_weight, const __half* up_weight, __half* out,
                                  int rows, int in_features, int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}

extern "C" void linear_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* gate_weight,
                                   const __nv_bfloat16* up_weight, __nv_bfloat16* out, int rows, int in_features,
                                   int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}
