// A different design: day 8's tensor-core kernel. It uses WMMA, so S and P pass through shared memory. A block of 128
// queries starts at the first tile that any of them sees. A warp skips tiles that none of its own 32 queries sees.
//
//   q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 32;  // queries per warp; each lane computes the softmax of one
constexpr int kQueries = kRows * kWarps;
constexpr int kKeys = 64;                   // keys in a tile
constexpr int kColumnPitch = kRows + 4;     // stride between columns of S in floats, chosen to avoid bank conflicts
constexpr int kWeightPitch = kKeys + 8;     // row stride of P in elements
constexpr int kOutColumns = 64;             // columns of out in a warp's buffer at a time
constexpr int kOutPitch = kOutColumns + 8;  // row stride of out in floats
constexpr int kWarpBytes = sizeof(float) * kKeys * kColumnPitch;  // a warp's buffer for S, then P, then out
static_assert(kWarpBytes >= 2 * kRows * kWeightPitch && kWarpBytes >= int(sizeof(float)) * kRows * kOutPitch);

// Sizes for heads of up to DIM columns.
template <int DIM>
struct Shape {
    static constexpr int kPitch = llmk::RowCopier<__half, DIM, kThreads>::kPitch;  // elements in a row
    static constexpr int kBlocks = DIM <= 64 ? 3 : 2;                              // resident blocks per SM
    static constexpr int kTiles = kQueries * kPitch + 2 * kKeys * kPitch;  // elements of the tiles of q, k and v
    static constexpr int kShared = 2 * kTiles + kWarps * (kWarpBytes + int(sizeof(float)) * kRows);  // bytes
};

// Multiplies each row of a stripe of 16 rows by its own factor. Which lane holds which row is not specified, but
// fragments of the same type have the same layout. So load another fragment, from a matrix whose columns are all
// `factors` (its column stride is 0): each element of that fragment is the factor of its row.
template <int N>
__device__ __forceinline__ void multiply_rows(llmk::Accumulator (&stripe)[N], const float* factors) {
    llmk::Accumulator factor;
    wmma::load_matrix_sync(factor, factors, 0, wmma::mem_col_major);
#pragma unroll
    for (int c = 0; c < N; ++c) {
#pragma unroll
        for (int e = 0; e < factor.num_elements; ++e) stripe[c].x[e] *= factor.x[e];
    }
}

template <typename T, int DIM>
__global__ void __launch_bounds__(kThreads, Shape<DIM>::kBlocks)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
           int query_len, int key_len, int head_dim, int window, float scale, bool vectors) {
    using S = Shape<DIM>;
    constexpr int kAcross = DIM / 16;  // fragments across a row of q, k, v or out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);   // [kQueries][kPitch]
    T* k_tile = q_tile + kQueries * S::kPitch;  // [kKeys][kPitch]
    T* v_tile = k_tile + kKeys * S::kPitch;     // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned char* piece = shared + 2 * S::kTiles + warp * kWarpBytes;
    float* scores = reinterpret_cast<float*>(piece);  // [kKeys][kColumnPitch]: S transposed
    T* weights = reinterpret_cast<T*>(piece);         // [kRows][kWeightPitch]
    float* factors = reinterpret_cast<float*>(shared + 2 * S::kTiles + kWarps * kWarpBytes) + warp * kRows;

    const int tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / tiles;
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) *
                            kQueries;  // start the thread blocks with the most keys first
    const long long offset = static_cast<long long>(key_len) - query_len;
    // A query sees the keys from `begin_of` to `end_of` - 1.
    auto end_of = [&](int query) { return static_cast<int>(min(query + offset + 1, static_cast<long long>(key_len))); };
    auto begin_of = [&](int query) { return static_cast<int>(max(query + offset + 1 - window, 0LL)); };
    const int first_row = first_query + warp * kRows, last_row = first_row + kRows - 1;
    const int begin = begin_of(first_row + lane), end = end_of(first_row + lane);  // the keys of this lane's row
    const int warp_begin = begin_of(first_row), warp_end = end_of(last_row);  // keys that some row of the warp sees
    const int all_begin = begin_of(last_row), all_end = end_of(first_row);    // keys that every row of the warp sees
    const int key_begin = begin_of(first_query) / kKeys * kKeys, key_end = end_of(first_query + kQueries - 1);
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += (head * key_len + key_begin) * head_dim;
    v += (head * key_len + key_begin) * head_dim;
    const llmk::RowCopier<T, DIM, kThreads> copier(head_dim, vectors);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    copier.template copy<kKeys>(k_tile, k, key_len - key_begin);

    llmk::Accumulator o[2][kAcross];
    llmk::zero_fragments(o);
    float m = -INFINITY, l = 0;  // this lane's row: the largest score so far, the sum of 2^(score - m)
    const float to_base_2 = scale * llmk::kLog2E;

    for (int first_key = key_begin; first_key < key_end; first_key += kKeys) {
        llmk::cp_async_wait_all_and_sync();  // this tile of k has arrived, and the tile of v is free
        copier.template copy<kKeys>(v_tile, v, key_len - first_key);
        v += static_cast<long long>(kKeys) * head_dim;

        const bool needed = first_key + kKeys > warp_begin && first_key < warp_end;  // this warp computes the tile
        if (needed) {
            // S = Q K^T. k is [key, column]: it is the [column, key] matrix of the product, stored column-major.
            llmk::Accumulator s[2][kKeys / 16];
            llmk::zero_fragments(s);
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
                llmk::OperandA<T> queries[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    llmk::load_fragment(queries[i], q_tile + (warp * kRows + i * 16) * S::kPitch + c * 16, S::kPitch);
                }
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    llmk::OperandB<T> keys;
                    llmk::load_fragment(keys, k_tile + j * 16 * S::kPitch + c * 16, S::kPitch);
#pragma unroll
                    for (int i = 0; i < 2; ++i) wmma::mma_sync(s[i][j], queries[i], keys, s[i][j]);
                }
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    wmma::store_matrix_sync(scores + j * 16 * kColumnPitch + i * 16, s[i][j], kColumnPitch,
                                            wmma::mem_col_major);
                }
            }
            __syncwarp();

            // The online softmax of row `lane`, in f32.
            float p[kKeys];
#pragma unroll
            for (int j = 0; j < kKeys; ++j) p[j] = scores[j * kColumnPitch + lane] * to_base_2;
            if (first_key < all_begin || first_key + kKeys > all_end) {  // a tile that is partly masked for some row
#pragma unroll
                for (int j = 0; j < kKeys; ++j) {
                    if (first_key + j < begin || first_key + j >= end) p[j] = -INFINITY;
                }
            }
            float largest[4] = {m, m, m, m};  // four independent chains of operations, to hide latency
#pragma unroll
            for (int j = 0; j < kKeys; ++j) largest[j % 4] = fmaxf(largest[j % 4], p[j]);
            const float new_m = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
            const float base = llmk::finite_max_or_zero(new_m);
            const float correction = llmk::ex2_approx(m - base);
            float sum[4] = {};
#pragma unroll
            for (int j = 0; j < kKeys; ++j) {
                p[j] = llmk::ex2_approx(p[j] - base);
                sum[j % 4] += p[j];
            }
            m = new_m;
            l = l * correction + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
            factors[lane] = correction;
            __syncwarp();  // all lanes have read their scores, so weights may overwrite them
#pragma unroll
            for (int j = 0; j < kKeys; j += 8) {
                llmk::Vector<T> rounded;
#pragma unroll
                for (int i = 0; i < 8; ++i) rounded.set(i, p[j + i]);
                llmk::store_vector(weights + lane * kWeightPitch + j, rounded);
            }
            __syncwarp();
            if (__any_sync(0xffffffff, correction < 1)) {
#pragma unroll
                for (int i = 0; i < 2; ++i) multiply_rows(o[i], factors + i * 16);
            }
        }

        llmk::cp_async_wait_all_and_sync();  // this tile of v has arrived, and the tile of k is free
        k += static_cast<long long>(kKeys) * head_dim;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_len - first_key - kKeys);

        if (needed) {
            // O += P V
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                llmk::OperandA<T> part[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    llmk::load_fragment(part[i], weights + i * 16 * kWeightPitch + j * 16, kWeightPitch);
                }
#pragma unroll
                for (int c = 0; c < kAcross; ++c) {
                    llmk::OperandB<T, wmma::row_major> values;
                    llmk::load_fragment(values, v_tile + j * 16 * S::kPitch + c * 16, S::kPitch);
#pragma unroll
                    for (int i = 0; i < 2; ++i) wmma::mma_sync(o[i][c], part[i], values, o[i][c]);
                }
            }
            __syncwarp();  // all lanes have read the weights, so the next scores may overwrite them
        }
    }
    __pipeline_wait_prior(0);

    factors[lane] = llmk::reciprocal_or_zero(l);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_rows(o[i], factors + i * 16);

    // Round the sums to T and write them through this warp's buffer in shared memory, kOutColumns columns at a time.
    float* staged = reinterpret_cast<float*>(piece);  // [kRows][kOutPitch]
#pragma unroll
    for (int first = 0; first < DIM; first += kOutColumns) {
        __syncwarp();
#pragma unroll
        for (int c = first / 16; c < kAcross && c < (first + kOutColumns) / 16; ++c) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                wmma::store_matrix_sync(staged + i * 16 * kOutPitch + c * 16 - first, o[i][c], kOutPitch,
                                        wmma::mem_row_major);
            }
        }
        __syncwarp();
        for (int i = lane; i < kRows * kOutColumns / 4; i += 32) {
            const int r = i / (kOutColumns / 4), column = first + i % (kOutColumns / 4) * 4;
            if (first_query + warp * kRows + r >= query_len || column >= head_dim) continue;
            const float4 sums = *reinterpret_cast<const float4*>(staged + r * kOutPitch + column - first);
            const float four[4] = {sums.x, sums.y, sums.z, sums.w};
            T* to = out + static_cast<long long>(warp * kRows + r) * head_dim + column;
            llmk::store_rounded(to, four, vectors, 0, 4);
        }
    }
}

template <typename T, int DIM>
void launch(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len, int head_dim,
            int window, float scale, cudaStream_t stream) {
    using S = Shape<DIM>;
    const long long tiles = (query_len + kQueries - 1) / kQueries;
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared);
    attend<T, DIM><<<static_cast<unsigned>(tiles * batch * heads), kThreads, S::kShared, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, window, scale, llmk::rows_are_aligned(0, q, k, v, out));
}

template <typename T>
void sliding_window(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                    int head_dim, int window, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim <= 64 ? launch<T, 64> : head_dim <= 96 ? launch<T, 96> : launch<T, 128>;
    launch_for(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
