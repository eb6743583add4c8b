// Correct alternative: a block is one warp. It copies 16 rows of x and 8 rows of weight to shared memory, 256 columns
// at a time, and multiplies them with WMMA fragments of 32 x 8 x 16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

// Copies 256 columns of some rows, from column k0 on, to shared memory. Columns past the end become zero.
template <typename T>
__device__ void bring(T* to, const T* from, int count, int there, int k0, int columns, bool wide) {
    for (int row = 0; row < count; ++row) {
        const int k = k0 + threadIdx.x * 8;
        const T* at = from + (size_t)row * columns + k;
        if (wide && row < there && k < columns) {
            *reinterpret_cast<uint4*>(to + row * 264 + threadIdx.x * 8) = *reinterpret_cast<const uint4*>(at);
        } else {
            for (int j = 0; j < 8; ++j) {
                to[row * 264 + threadIdx.x * 8 + j] = row < there && k + j < columns ? at[j] : T(0.0f);
            }
        }
    }
}

template <typename T>
__global__ void few_rows(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features,
                         bool has_bias, bool wide) {
    __shared__ __align__(32) T a[32 * 264], b[8 * 264];
    __shared__ __align__(32) float sums[32 * 8];
    const int feature0 = blockIdx.x * 8, row0 = blockIdx.y * 32;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < inner; k0 += 256) {
        bring(a, x + (size_t)row0 * inner, 32, rows - row0, k0, inner, wide);
        bring(b, weight + (size_t)feature0 * inner, 8, features - feature0, k0, inner, wide);
        __syncwarp();
        for (int k = 0; k < 256; k += 16) {
            wmma::fragment<wmma::matrix_a, 32, 8, 16, T, wmma::row_major> fa;
            wmma::fragment<wmma::matrix_b, 32, 8, 16, T, wmma::col_major> fb;
            wmma::load_matrix_sync(fa, a + k, 264);
            wmma::load_matrix_sync(fb, b + k, 264);
            wmma::mma_sync(sum, fa, fb, sum);
        }
        __syncwarp();
    }
    wmma::store_matrix_sync(sums, sum, 8, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 32 * 8; i += 32) {
        const int row = row0 + i / 8, feature = feature0 + i % 8;
        if (row >= rows || feature >= features) continue;
        out[(size_t)row * features + feature] = T(sums[i] + (has_bias ? (float)bias[feature] : 0.0f));
    }
}

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features, bool has_bias,
                   cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const bool wide =
        inner % 8 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight)) % 16 == 0;
    few_rows<<<dim3((features + 7) / 8, (rows + 31) / 32), 32, 0, stream>>>(x, weight, bias, out, rows, inner, features,
                                                                            has_bias, wide);
}
