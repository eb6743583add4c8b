// A different design: tiles have padded instead of swizzled rows, and there is one buffer instead of a ring. A block
// computes 64 queries of one head.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "llmk/mma.cuh"

constexpr int kWarps = 4, kQueries = 16 * kWarps, kKeys = 32;

// Columns of a row in shared memory: at least 16, the depth of mma.sync.
template <int HEAD_DIM>
constexpr int kColumns = HEAD_DIM < 16 ? 16 : HEAD_DIM;

// Columns that a thread moves at a time.
template <int HEAD_DIM>
constexpr int kPiece = HEAD_DIM < 8 ? HEAD_DIM : 8;

// Copies rows to a tile of kRows rows with a row stride of kColumns + 8 elements. `there` is the number of rows that
// exist; the remaining rows and columns of the tile become zero.
template <int HEAD_DIM, int kRows, typename T>
__device__ void copy_rows(T* tile, const T* from, long long stride, int there) {
    constexpr int kPieces = kColumns<HEAD_DIM> / kPiece<HEAD_DIM>, kBytes = 2 * kPiece<HEAD_DIM>;
    for (int i = threadIdx.x; i < kRows * kPieces; i += 32 * kWarps) {
        const int row = i / kPieces, column = i % kPieces * kPiece<HEAD_DIM>;
        __pipeline_memcpy_async(tile + row * (kColumns<HEAD_DIM> + 8) + column, from + row * stride + column, kBytes,
                                row < there && column < HEAD_DIM ? 0 : kBytes);
    }
    __pipeline_commit();
}

template <typename T, int HEAD_DIM>
__global__ void attend(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                       int heads, int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal) {
    constexpr int DIM = kColumns<HEAD_DIM>, kPitch = DIM + 8;
    extern __shared__ __align__(16) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);  // [kQueries][kPitch]
    T* k_tile = q_tile + kQueries * kPitch;    // [kKeys][kPitch]
    T* v_tile = k_tile + kKeys * kPitch;       // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int b = blockIdx.z, head = blockIdx.y, first_query = blockIdx.x * kQueries;
    const int query_len = query_starts[b + 1] - query_starts[b], key_len = key_starts[b + 1] - key_starts[b];
    if (first_query >= query_len) return;
    const int last = causal ? min(first_query + kQueries + key_len - query_len, key_len) : key_len;
    q += (query_starts[b] + first_query) * q_stride + head * HEAD_DIM;
    k += key_starts[b] * kv_stride + head / (heads / kv_heads) * HEAD_DIM;
    v += key_starts[b] * kv_stride + head / (heads / kv_heads) * HEAD_DIM;
    copy_rows<HEAD_DIM, kQueries>(q_tile, q, q_stride, query_len - first_query);

    float o[DIM / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
    for (int first_key = 0; first_key < last; first_key += kKeys) {
        copy_rows<HEAD_DIM, kKeys>(k_tile, k + first_key * kv_stride, kv_stride, key_len - first_key);
        copy_rows<HEAD_DIM, kKeys>(v_tile, v + first_key * kv_stride, kv_stride, key_len - first_key);
        __pipeline_wait_prior(0);
        __syncthreads();
        float s[kKeys / 8][4] = {};
        for (int c = 0; c < DIM; c += 16) {
            unsigned queries[4], keys[4];
            llmk::ldmatrix_x4(queries, q_tile + (warp * 16 + lane % 16) * kPitch + c + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                llmk::ldmatrix_x4(keys, k_tile + (j * 16 + lane % 16) * kPitch + c + lane / 16 * 8);
                llmk::mma_m16n8k16<T>(s[2 * j], queries, keys[0], keys[2]);
                llmk::mma_m16n8k16<T>(s[2 * j + 1], queries, keys[1], keys[3]);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int query = first_query + warp * 16 + h * 8 + lane / 4;
            const int seen = causal ? min(query + 1 + key_len - query_len, key_len) : key_len;
            float new_m = m[h];
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    s[j][e] = first_key + j * 8 + lane % 4 * 2 + e % 2 < seen ? s[j][e] * scale : -INFINITY;
                    new_m = fmaxf(new_m, s[j][e]);
                }
            }
            new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 1));
            new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 2));
            const float base = new_m == -INFINITY ? 0.0f : new_m, correction = expf(m[h] - base);
            m[h] = new_m;
            l[h] *= correction;
#pragma unroll
            for (int c = 0; c < DIM / 8; ++c) {
                o[c][2 * h] *= correction;
                o[c][2 * h + 1] *= correction;
            }
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    s[j][e] = expf(s[j][e] - base);
                    l[h] += s[j][e];
                }
            }
        }
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {
            const unsigned weights[4] = {llmk::pack_pair<T>(s[2 * j][0], s[2 * j][1]),
                                         llmk::pack_pair<T>(s[2 * j][2], s[2 * j][3]),
                                         llmk::pack_pair<T>(s[2 * j + 1][0], s[2 * j + 1][1]),
                                         llmk::pack_pair<T>(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c) {
                unsigned values[4];
                llmk::ldmatrix_x4_trans(values, v_tile + (j * 16 + lane % 16) * kPitch + c * 16 + lane / 16 * 8);
                llmk::mma_m16n8k16<T>(o[2 * c], weights, values[0], values[1]);
                llmk::mma_m16n8k16<T>(o[2 * c + 1], weights, values[2], values[3]);
            }
        }
        __syncthreads();  // all threads have finished with the tiles
    }
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(0xffffffff, l[h], 1);
        l[h] += __shfl_xor_sync(0xffffffff, l[h], 2);
        const float inverse = l[h] > 0 ? 1 / l[h] : 0.0f;
        T* row = q_tile + (warp * 16 + h * 8 + lane / 4) * kPitch + lane % 4 * 2;
#pragma unroll
        for (int c = 0; c < DIM / 8; ++c) {
            *reinterpret_cast<unsigned*>(row + c * 8) =
                llmk::pack_pair<T>(o[c][2 * h] * inverse, o[c][2 * h + 1] * inverse);
        }
    }
    __syncthreads();
    using Piece = std::conditional_t<HEAD_DIM == 4, uint2, uint4>;
    constexpr int kPieces = HEAD_DIM / kPiece<HEAD_DIM>;
    for (int i = threadIdx.x; i < kQueries * kPieces; i += 32 * kWarps) {
        const int row = i / kPieces, column = i % kPieces * kPiece<HEAD_DIM>;
        if (first_query + row >= query_len) continue;
        const long long token = query_starts[b] + first_query + row;
        *reinterpret_cast<Piece*>(out + (token * heads + head) * HEAD_DIM + column) =
            *reinterpret_cast<const Piece*>(q_tile + row * kPitch + column);
    }
}

template <typename T, int DIM>
void launch(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int batch,
            int max_queries, int heads, int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal,
            cudaStream_t stream) {
    const dim3 grid((max_queries + kQueries - 1) / kQueries, heads, batch);
    const int bytes = 2 * (kQueries + 2 * kKeys) * (kColumns<DIM> + 8);
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    attend<T, DIM><<<grid, 32 * kWarps, bytes, stream>>>(q, k, v, query_starts, key_starts, out, heads, kv_heads,
                                                         q_stride, kv_stride, scale, causal);
}

template <typename T>
void mma_flash_attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                         int batch, int max_queries, int heads, int kv_heads, int head_dim, long long q_stride,
                         long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || max_queries == 0 || heads == 0) return;
    const auto launch_for = head_dim == 4     ? launch<T, 4>
                            : head_dim == 8   ? launch<T, 8>
                            : head_dim == 64  ? launch<T, 64>
                            : head_dim == 80  ? launch<T, 80>
                            : head_dim == 96  ? launch<T, 96>
                            : head_dim == 128 ? launch<T, 128>
                                              : launch<T, 256>;
    launch_for(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, q_stride, kv_stride, scale,
               causal, stream);
}
