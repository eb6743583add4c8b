// Attention in mixed precision: f16 or bf16 in and out, tensor cores through WMMA, accumulators and softmax in f32.
//
// A block owns 128 queries, a warp 32 of them. For each tile of 64 keys a warp
//   - multiplies S = Q K^T on the tensor cores, accumulators in f32,
//   - stores S to its own piece of shared memory, column by column: row r of S then lies in bank r,
//   - lets lane r do the online softmax of row r, in f32, and round the weights once, to the type of the values,
//   - corrects O, and multiplies O += P V on the tensor cores.
// Meanwhile cp.async copies the next tile of v, or of k.
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
constexpr int kRows = 32;  // queries per warp: one per lane in the softmax
constexpr int kQueries = kRows * kWarps;
constexpr int kKeys = 64;                   // keys per tile
constexpr int kColumnPitch = kRows + 4;     // floats from a column of S to the next; stores have no bank conflicts
constexpr int kWeightPitch = kKeys + 8;     // elements from a row of P to the next
constexpr int kOutColumns = 64;             // columns of out that pass through a warp's piece at a time
constexpr int kOutPitch = kOutColumns + 8;  // floats from a row of these columns to the next row
constexpr int kWarpBytes =
    sizeof(float) * kKeys * kColumnPitch;  // bytes of a warp's piece, which holds S, then P, then out
static_assert(kWarpBytes >= 2 * kRows * kWeightPitch && kWarpBytes >= int(sizeof(float)) * kRows * kOutPitch);

// Sizes for heads of up to DIM columns.
template <int DIM>
struct Shape {
    static constexpr int kPitch = llmk::RowCopier<__half, DIM, kThreads>::kPitch;  // elements from row to row of a tile
    static constexpr int kBlocks = DIM <= 64 ? 3 : 2;  // resident blocks per streaming multiprocessor (SM)
    static constexpr int kTiles = kQueries * kPitch + 2 * kKeys * kPitch;  // elements of the tiles of q, k and v
    static constexpr int kShared = 2 * kTiles + kWarps * (kWarpBytes + int(sizeof(float)) * kRows);  // bytes
};

// Multiply each row of a stripe of 16 rows by its own factor. WMMA does not specify which lane holds which row. But a
// fragment of the same type, loaded from a matrix whose columns are all `factors` (column stride 0),
// has the factor of a row wherever the other fragment has an element of that row.
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
           int query_len, int key_len, int head_dim, float scale, bool causal, bool vectors) {
    using S = Shape<DIM>;
    constexpr int kAcross = DIM / 16;  // fragments across a row of q, k, v or out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);   // [kQueries][kPitch]
    T* k_tile = q_tile + kQueries * S::kPitch;  // [kKeys][kPitch]
    T* v_tile = k_tile + kKeys * S::kPitch;     // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned char* piece = shared + 2 * S::kTiles + warp * kWarpBytes;
    float* scores = reinterpret_cast<float*>(piece);  // [kKeys][kColumnPitch]: a column of S is a row of it
    T* weights = reinterpret_cast<T*>(piece);         // [kRows][kWeightPitch]
    float* factors = reinterpret_cast<float*>(shared + 2 * S::kTiles + kWarps * kWarpBytes) + warp * kRows;

    const int tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / tiles;
    // Under a causal mask the last queries see the most keys, so they start first.
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * kQueries;
    const long long offset = static_cast<long long>(key_len) - query_len;
    // A query sees the keys before its limit. `seen` is the limit of this lane's row. `least` and `key_end` bound the
    // limits of all queries of the block from below and from above.
    auto limit = [&](int query) {
        return causal ? static_cast<int>(min(query + offset + 1, static_cast<long long>(key_len))) : key_len;
    };
    const int seen = limit(first_query + warp * kRows + lane);
    const int least = limit(first_query), key_end = limit(first_query + kQueries - 1);
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += head * key_len * head_dim;
    v += head * key_len * head_dim;
    const llmk::RowCopier<T, DIM, kThreads> copier(head_dim, vectors);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    copier.template copy<kKeys>(k_tile, k, key_len);

    llmk::Accumulator o[2][kAcross];
    llmk::zero_fragments(o);
    float m = -INFINITY, l = 0;  // of this lane's row. m: largest score so far; l: sum of 2^(score - m)
    const float to_base_2 = scale * llmk::kLog2E;

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        llmk::cp_async_wait_all_and_sync();  // this tile of k has arrived, and all threads have used the last tile of v
        copier.template copy<kKeys>(v_tile, v, key_len - first_key);
        v += static_cast<long long>(kKeys) * head_dim;

        // S = Q K^T. k is [key, column], which is the right operand, column x key, in column-major order.
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
        if (first_key + kKeys > least) {  // most tiles need no mask
#pragma unroll
            for (int j = 0; j < kKeys; ++j) {
                if (first_key + j >= seen) p[j] = -INFINITY;
            }
        }
        float largest[4] = {m, m, m, m};  // four independent chains of operations
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
        __syncwarp();  // all lanes have read their scores, so the weights may overwrite them
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

        llmk::cp_async_wait_all_and_sync();  // this tile of v is complete, and all threads have used the tile of k
        k += static_cast<long long>(kKeys) * head_dim;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_len - first_key - kKeys);

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
    __pipeline_wait_prior(0);

    factors[lane] = llmk::reciprocal_or_zero(l);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_rows(o[i], factors + i * 16);

    // Round once and write, kOutColumns columns at a time through this warp's piece of shared memory.
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
            float scale, bool causal, cudaStream_t stream) {
    using S = Shape<DIM>;
    const long long tiles = (query_len + kQueries - 1) / kQueries;
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared);
    attend<T, DIM><<<static_cast<unsigned>(tiles * batch * heads), kThreads, S::kShared, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, scale, causal, llmk::rows_are_aligned(0, q, k, v, out));
}

template <typename T>
void mixed_precision_attention(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim <= 64 ? launch<T, 64> : head_dim <= 96 ? launch<T, 96> : launch<T, 128>;
    launch_for(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
extern "C" void mixed_precision_attention_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch,
                                              int heads, int query_len, int key_len, int head_dim, float scale,
                                              bool causal, cudaStream_t stream) {
    mixed_precision_attention(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}

extern "C" void mixed_precision_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                               __nv_bfloat16* out, int batch, int heads, int query_len, int key_len,
                                               int head_dim, float scale, bool causal, cudaStream_t stream) {
    mixed_precision_attention(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}
