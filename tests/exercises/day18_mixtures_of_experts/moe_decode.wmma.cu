// Another design: WMMA through shared memory. The first kernel has a block per expert and 16 features. The second has a
// block per 16 features of out. A block multiplies 64 gathered rows, most of which are zero, by 16 rows of weights.
// Each of its four warps has 16 rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

constexpr int kThreads = 128, kRows = 64, kFeatures = 16, kDepth = 64, kPitch = kDepth + 8, kSumPitch = 20;

template <typename T>
struct Tile {
    T a[kRows * kPitch];
    T b[kFeatures * kPitch];
    float sums[kRows * kSumPitch];
    int pairs[kRows];
    int found;
};

// List the pairs of an expert, in order.
template <typename T>
__device__ void find_pairs(Tile<T>& tile, const int* ids, int count, int expert) {
    __syncthreads();
    if (threadIdx.x < 32) {
        int found = 0;
        for (int first = 0; first < count; first += 32) {
            const int p = first + threadIdx.x;
            const bool own = p < count && ids[p] == expert;
            const unsigned lanes = __ballot_sync(0xffffffffu, own);
            if (own) tile.pairs[found + __popc(lanes & ((1u << threadIdx.x) - 1))] = p;
            found += __popc(lanes);
        }
        if (threadIdx.x == 0) tile.found = found;
    }
    __syncthreads();
}

// Computes tile.sums = rows of x times rows of w. Pair p uses row p / divisor of x; w has `features` rows.
template <typename T>
__device__ void multiply(Tile<T>& tile, const T* x, int divisor, const T* w, int features, int columns) {
    const int warp = threadIdx.x / 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < columns; k += kDepth) {
        for (int i = threadIdx.x; i < (kRows + kFeatures) * kDepth / 8; i += kThreads) {
            const int row = i / (kDepth / 8), column = k + i % (kDepth / 8) * 8;
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (row < kRows) {
                if (row < tile.found && column < columns) {
                    const long long from = static_cast<long long>(tile.pairs[row] / divisor) * columns + column;
                    bits = *reinterpret_cast<const uint4*>(x + from);
                }
                *reinterpret_cast<uint4*>(tile.a + row * kPitch + column - k) = bits;
            } else {
                const int feature = row - kRows;
                if (feature < features && column < columns) {
                    bits = *reinterpret_cast<const uint4*>(w + static_cast<long long>(feature) * columns + column);
                }
                *reinterpret_cast<uint4*>(tile.b + feature * kPitch + column - k) = bits;
            }
        }
        __syncthreads();
        for (int c = 0; c < kDepth; c += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b;
            wmma::load_matrix_sync(a, tile.a + warp * 16 * kPitch + c, kPitch);
            wmma::load_matrix_sync(b, tile.b + c, kPitch);
            wmma::mma_sync(sums, a, b, sums);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(tile.sums + warp * 16 * kSumPitch, sums, kSumPitch, wmma::mem_row_major);
    __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(kThreads) first_kernel(const T* x, const int* ids, const T* gate_up, T* middle,
                                                         int tokens, int top_k, int hidden, int inter) {
    __shared__ __align__(128) Tile<T> tile;
    const int feature = blockIdx.x * kFeatures, expert = blockIdx.y, features = min(kFeatures, inter - feature);
    find_pairs(tile, ids, tokens * top_k, expert);
    if (tile.found == 0) return;
    const T* gate = gate_up + (2LL * expert * inter + feature) * hidden;
    constexpr int kEach = kRows * kFeatures / kThreads;
    float gates[kEach];
    multiply(tile, x, top_k, gate, features, hidden);
    for (int i = 0; i < kEach; ++i) {
        const int at = i * kThreads + threadIdx.x;
        gates[i] = tile.sums[at / kFeatures * kSumPitch + at % kFeatures];
    }
    __syncthreads();
    multiply(tile, x, top_k, gate + static_cast<long long>(inter) * hidden, features, hidden);
    for (int i = 0; i < kEach; ++i) {
        const int at = i * kThreads + threadIdx.x, row = at / kFeatures;
        if (row >= tile.found || at % kFeatures >= features) continue;
        middle[static_cast<long long>(tile.pairs[row]) * inter + feature + at % kFeatures] =
            static_cast<T>(gates[i] / (1.0f + expf(-gates[i])) * tile.sums[row * kSumPitch + at % kFeatures]);
    }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    second_kernel(const T* middle, const int* ids, const float* weights, const T* down, T* out, int tokens, int experts,
                  int top_k, int hidden, int inter) {
    __shared__ __align__(128) Tile<T> tile;
    __shared__ float table[kRows][kFeatures];
    const int feature = blockIdx.x * kFeatures, features = min(kFeatures, hidden - feature);
    for (int i = threadIdx.x; i < kRows * kFeatures; i += kThreads) table[i / kFeatures][i % kFeatures] = 0.0f;
    for (int expert = 0; expert < experts; ++expert) {
        find_pairs(tile, ids, tokens * top_k, expert);
        if (tile.found == 0) continue;
        multiply(tile, middle, 1, down + (static_cast<long long>(expert) * hidden + feature) * inter, features, inter);
        for (int at = threadIdx.x; at < tile.found * kFeatures; at += kThreads) {
            const int row = at / kFeatures, pair = tile.pairs[row];
            table[pair / top_k][at % kFeatures] += weights[pair] * tile.sums[row * kSumPitch + at % kFeatures];
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < tokens * kFeatures; at += kThreads) {
        if (at % kFeatures >= features) continue;
        out[static_cast<long long>(at / kFeatures) * hidden + feature + at % kFeatures] =
            static_cast<T>(table[at / kFeatures][at % kFeatures]);
    }
}

template <typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    if (tokens == 0) return;
    first_kernel<<<dim3((inter + kFeatures - 1) / kFeatures, experts), kThreads, 0, stream>>>(
        x, ids, gate_up, middle, tokens, top_k, hidden, inter);
    second_kernel<<<(hidden + kFeatures - 1) / kFeatures, kThreads, 0, stream>>>(middle, ids, weights, down, out,
                                                                                 tokens, experts, top_k, hidden, inter);
}
