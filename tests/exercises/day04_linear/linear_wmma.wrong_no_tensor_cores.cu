// Wrong: a GEMM of f16 or bf16 matrices with correct results, little traffic and no bank conflicts, but no tensor
// cores.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kTile = 64;   // a block computes kTile x kTile outputs; each of its 16 x 16 threads computes 4 x 4
constexpr int kDepth = 32;  // columns in shared memory at a time

template <typename T>
__global__ void linear_kernel(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features) {
    __shared__ float x_tile[kTile][kDepth + 1], w_tile[kTile][kDepth + 1];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    const int tx = threadIdx.x, ty = threadIdx.y;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += kDepth) {
        for (int i = ty * 16 + tx; i < kTile * kDepth; i += 256) {
            const int r = i / kDepth, k = i % kDepth;
            const bool inside = k0 + k < inner;
            x_tile[r][k] = inside && row0 + r < rows ? static_cast<float>(x[(row0 + r) * inner + k0 + k]) : 0.0f;
            w_tile[r][k] =
                inside && feature0 + r < features ? static_cast<float>(weight[(feature0 + r) * inner + k0 + k]) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < kDepth; ++k) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += x_tile[ty + 16 * i][k] * w_tile[tx + 16 * j][k];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < features)
                out[row * features + feature] = static_cast<T>(sum[i][j] + static_cast<float>(bias[feature]));
        }
    }
}

template <typename T>
void launch(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features,
            cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const dim3 blocks((features + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    linear_kernel<<<blocks, dim3(16, 16), 0, stream>>>(x, weight, bias, out, rows, inner, features);
}

extern "C" void linear_wmma_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_wmma_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                 __nv_bfloat16* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, in_features, out_features, stream);
}
