// Correct alternative: a block is one warp; tiles of 32 rows and 8 weight rows pass through shared memory to WMMA's 32
// x 8 x 16 fragments, 256 columns at a time. The weights are multiplied by norm_weight, and lane r sums the squares of
// row r
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
struct Projection {
    const T* weight;
    const T* bias;
    T* out;
    int features;
};

template <typename T>
__global__ void few_rows(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                         int inner, float eps, bool wide) {
    __shared__ __align__(32) T a[32 * 264], b[8 * 264], norm[264];
    __shared__ __align__(32) float sums[32 * 8];
    const int row0 = blockIdx.y * 32;
    float square = 0;
    int tile = blockIdx.x;
    const int q_tiles = (q.features + 7) / 8, kv_tiles = (k.features + 7) / 8;
    const Projection<T> own = tile < q_tiles ? q : tile < q_tiles + kv_tiles ? k : v;
    if (tile >= q_tiles) tile = (tile - q_tiles) % kv_tiles;
    const T* weight = own.weight;
    const int features = own.features, feature0 = tile * 8;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < inner; k0 += 256) {
        bring(a, x + (size_t)row0 * inner, 32, rows - row0, k0, inner, wide);
        bring(b, weight + (size_t)feature0 * inner, 8, features - feature0, k0, inner, wide);
        bring(norm, norm_weight, 1, 1, k0, inner, wide);
        __syncwarp();
        const int lane = threadIdx.x;
        for (int k = 0; k < 256; ++k) {
            const float value = (float)a[lane * 264 + (k + 2 * lane) % 256];
            square += value * value;
        }
        for (int j = 0; j < 8; ++j) {
            const int k = lane * 8 + j;
            const float by = (float)norm[k];
            for (int row = 0; row < 8; ++row) b[row * 264 + k] = T((float)b[row * 264 + k] * by);
        }
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
    __shared__ float factors[32];
    factors[threadIdx.x] = rsqrtf(square / max(inner, 1) + eps);
    __syncwarp();
    for (int i = threadIdx.x; i < 32 * 8; i += 32) {
        const int row = row0 + i / 8, feature = feature0 + i % 8;
        if (row >= rows || feature >= features) continue;
        own.out[(size_t)row * features + feature] = T(sums[i] * factors[i / 8] + (float)own.bias[feature]);
    }
}

template <typename T>
void rms_norm_qkv(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                  int inner, float eps, cudaStream_t stream) {
    const int blocks = (q.features + 7) / 8 + 2 * ((k.features + 7) / 8);
    if (rows == 0 || blocks == 0) return;
    const auto all = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(norm_weight) |
                     reinterpret_cast<uintptr_t>(q.weight) | reinterpret_cast<uintptr_t>(k.weight) |
                     reinterpret_cast<uintptr_t>(v.weight);
    const bool wide = inner % 8 == 0 && all % 16 == 0;
    few_rows<<<dim3(blocks, (rows + 32 - 1) / 32), 32, 0, stream>>>(x, norm_weight, q, k, v, rows, inner, eps, wide);
}

// x: [rows, in_features]   norm_weight: [in_features]   q_weight: [q_features, in_features]   q_bias: [q_features]
// q: [rows, q_features]   k_weight, v_weight: [kv_features, in_features]   k_bias, v_bias: [kv_features]
// k, v: [rows, kv_features]
