// Wrong: two kernels. The first one writes normalized rows to global memory, and the second one reads them
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

template <typename T>
__global__ void norm_kernel(const T* x, const T* norm_weight, T* normed, int rows, int inner, float eps) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= rows) return;
    float squares = 0.0f;
    for (int k = lane; k < inner; k += 32)
        squares += (float)x[(size_t)row * inner + k] * (float)x[(size_t)row * inner + k];
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, d);
    const float factor = rsqrtf(squares / max(inner, 1) + eps);
    for (int k = lane; k < inner; k += 32) {
        put(normed + (size_t)row * inner + k, (float)x[(size_t)row * inner + k] * factor * (float)norm_weight[k]);
    }
}

template <typename T>
__global__ void product_kernel(const T* x, const T* weight, T* out, int rows, int inner, int features) {
    __shared__ float a[16][65], b[16][65];  // [k][row or feature], padded
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = k0 + tx;
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + ty + 16 * i, feature = feature0 + ty + 16 * i;
            a[tx][ty + 16 * i] = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
            b[tx][ty + 16 * i] = feature < features && k < inner ? (float)weight[(size_t)feature * inner + k] : 0.0f;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += a[kk][ty + 16 * i] * b[kk][tx + 16 * j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < features) put(out + (size_t)row * features + feature, sum[i][j]);
        }
    }
}

template <typename T>
void rms_norm_linear(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int inner, int features,
                     float eps, cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    T* normed = nullptr;
    cudaMallocAsync(reinterpret_cast<void**>(&normed), sizeof(T) * (size_t(rows) * inner + 1), stream);
    norm_kernel<<<(rows + 7) / 8, 256, 0, stream>>>(x, norm_weight, normed, rows, inner, eps);
    const dim3 grid((features + 63) / 64, (rows + 63) / 64);
    product_kernel<<<grid, 256, 0, stream>>>(normed, weight, out, rows, inner, features);
    cudaFreeAsync(normed, stream);
}

extern "C" void rms_norm_linear_f16(const __half* x, const __half* norm_weight, const __half* weight, __half* out,
                                    int rows, int in_features, int out_features, float eps, cudaStream_t stream) {
    rms_norm_linear(x, norm_weight, weight, out, rows, in_features, out_features, eps, stream);
}

extern "C" void rms_norm_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* norm_weight,
                                     const __nv_bfloat16* weight, __nv_bfloat16* out, int rows, int in_features,
                                     int out_features, float eps, cudaStream_t stream) {
    rms_norm_linear(x, norm_weight, weight, out, rows, in_features, out_features, eps, stream);
}
