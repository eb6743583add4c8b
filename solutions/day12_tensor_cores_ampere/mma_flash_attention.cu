// Attention on tensor cores with mma.sync, f16 or bf16, for several sequences, concatenated without padding.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
//   The heads of a token are contiguous. From token to token, q has a stride of q_stride elements, k and v of
//   kv_stride, and out of heads * head_dim. Sequence b has queries query_starts[b] ... query_starts[b + 1] - 1, and
//   keys likewise.
//
// A row is a query of one of the heads that share a key/value head: row r of key/value head g is query r / group of
// head g * group + r % group. A block handles kQueries rows, a warp kStripes times 16 of them, and all warps process
// the keys together. For each tile of keys a warp
//   - computes S = Q K^T, with accumulators in f32,
//   - runs the online softmax on S in registers: each lane holds a quarter of two rows of a stripe,
//   - rounds the weights, which then have the layout of operand A,
//   - and computes O += P V.
// Tiles of keys and of values take turns in a ring of kStages buffers in shared memory. While one is used, cp.async
// copies the next kStages - 1. Their chunks are swizzled, so no access has bank conflicts.
//
// mma.sync multiplies 16 columns at a time, so heads of 4 or 8 columns have rows of 16 in shared memory: the other
// columns are zeros. They add nothing to a score, and their columns of the output are not stored.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/mma_softmax.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/swizzle.cuh"

// Sizes for heads of HEAD_DIM columns. Up to 80 columns a warp keeps its queries in registers. Beyond that, the
// accumulators of two stripes leave no room for the queries, and they are read from shared memory again for each tile of
// keys. Beyond 128 columns a warp has only one stripe, and twice as many warps share the tiles. At 256 columns the
// queries of that stripe fit into registers.
template <int HEAD_DIM>
struct Shape {
    static constexpr int DIM = HEAD_DIM < 16 ? 16 : HEAD_DIM;  // columns in shared memory
    static constexpr int kStripes = DIM <= 128 ? 2 : 1;  // stripes per warp, of 16 rows each: the height of an mma.sync
    static constexpr int kWarps = DIM <= 128 ? 4 : 8;
    static constexpr int kBlocks = DIM <= 128 ? 2 : 1;  // resident blocks per SM
    static constexpr bool kKeepQueries = DIM <= 80 || DIM == 256;
    static constexpr int kKeys = DIM <= 128 ? 64 : 32;  // keys per tile
    static constexpr int kStages = DIM <= 128 ? 3 : 4;
    static constexpr int kThreads = 32 * kWarps;
    static constexpr int kRows = 16 * kStripes;  // rows per warp
    static constexpr int kQueries = kRows * kWarps;
    static constexpr int kTile = kKeys * DIM;  // elements of a tile
    // Queries that stay in registers are loaded through the ring; others have their own tile, which lies before the
    // ring.
    static constexpr int kRing = kKeepQueries ? 0 : kQueries * DIM;
    static constexpr int kShared = 2 * (kRing + kStages * kTile);  // bytes of shared memory
    static_assert(kQueries * DIM <= kRing + kStages * kTile, "the queries fit");
};

// A row is rescaled only when a score exceeds its reference by more than kSlack powers of 2. Until then its weights
// reach at most 2^kSlack, which f16 and bf16 represent well.
constexpr float kSlack = 8;

// A piece of a row that one thread copies: 16 bytes, or the 8 bytes of a head of 4 columns.
template <int HEAD_DIM>
using Piece = std::conditional_t<HEAD_DIM == 4, uint2, uint4>;

// Start the copies of ROWS rows of 4 or 8 columns to a tile in the swizzled layout, with all threads of the block. Only
// `there` rows exist. The others, and the columns from HEAD_DIM on, become zeros and are not read.
template <int HEAD_DIM, int ROWS, typename T>
__device__ __forceinline__ void copy_narrow_rows(T* tile, const T* from, long long stride, int there) {
    using S = Shape<HEAD_DIM>;
    constexpr int kPiece = sizeof(Piece<HEAD_DIM>) / 2, kPieces = S::DIM / kPiece;  // columns; pieces per row
    for (int i = threadIdx.x; i < ROWS * kPieces; i += S::kThreads) {
        const int row = i / kPieces, column = i % kPieces * kPiece;
        __pipeline_memcpy_async(tile + llmk::Swizzle<S::DIM>::offset(row, column), from + row * stride + column,
                                2 * kPiece, row < there && column < HEAD_DIM ? 0 : 2 * kPiece);
    }
}

template <typename T, int HEAD_DIM>
__global__ void __launch_bounds__(Shape<HEAD_DIM>::kThreads, Shape<HEAD_DIM>::kBlocks)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ query_starts, const int* __restrict__ key_starts, T* __restrict__ out, int heads,
           int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal) {
    using S = Shape<HEAD_DIM>;
    constexpr int DIM = S::DIM;
    using Layout = llmk::Swizzle<DIM>;
    constexpr int kStripes = S::kStripes, kRows = S::kRows, kQueries = S::kQueries, kKeys = S::kKeys;
    constexpr int kAcross = DIM / 16;  // steps of 16 columns across a row of q, k, v or out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);  // [kQueries][DIM]; at the end it holds the rows of out
    T* ring = q_tile + S::kRing;               // [kStages][kKeys][DIM]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const int group = heads / kv_heads, kv_head = blockIdx.y, sequence = blockIdx.z;
    const int first_token = query_starts[sequence], query_len = query_starts[sequence + 1] - first_token;
    const int first_key_token = key_starts[sequence], key_len = key_starts[sequence + 1] - first_key_token;
    const int rows = query_len * group;
    const int block_row = (gridDim.x - 1 - blockIdx.x) * kQueries;  // the rows that see the most keys start first
    if (block_row >= rows) return;
    const int there = min(rows - block_row, kQueries);  // rows of this block

    // For row i of the block: its query, its head, and the number of keys that it sees. The last query sees all keys.
    auto query_of = [&](int i) { return (block_row + i) / group; };
    auto head_of = [&](int i) { return kv_head * group + (block_row + i) % group; };
    auto seen_by = [&](int i) { return causal ? min(query_of(i) + 1 + key_len - query_len, key_len) : key_len; };
    const int warp_row = warp * kRows;
    const int key_end = seen_by(there - 1);  // no row of the block sees more keys
    // All rows of the warp see at least warp_all keys; none sees more than warp_most.
    const int warp_all = seen_by(warp_row), warp_most = min(seen_by(warp_row + kRows - 1), key_end);

    constexpr int kPiece = sizeof(Piece<HEAD_DIM>) / 2, kPieces = DIM / kPiece;  // columns; pieces per row
    for (int i = threadIdx.x; i < kQueries * kPieces; i += S::kThreads) {
        const int row = i / kPieces, column = i % kPieces * kPiece;
        const T* from = q + (first_token + query_of(row)) * q_stride + head_of(row) * HEAD_DIM + column;
        __pipeline_memcpy_async(q_tile + Layout::offset(row, column), from, 2 * kPiece,
                                row < there && column < HEAD_DIM ? 0 : 2 * kPiece);
    }
    // The row and the column of the address that this lane passes to ldmatrix, for the first fragment of each tile.
    const int my_query = warp_row + lane % 16, my_query_column = lane / 16 * 8;
    const int my_key = lane % 8 + lane / 16 * 8, my_key_column = lane / 8 % 2 * 8;
    const int my_value = lane % 16, my_value_column = lane / 16 * 8;
    unsigned queries[S::kKeepQueries ? kAcross : 1][kStripes][4];
    auto load_queries = [&](unsigned (&to)[kStripes][4], int c) {
#pragma unroll
        for (int i = 0; i < kStripes; ++i) {
            llmk::ldmatrix_x4(to[i], q_tile + i * 16 * DIM + Layout::offset(my_query, my_query_column, c));
        }
    };
    if constexpr (S::kKeepQueries) {
        __pipeline_commit();
        llmk::cp_async_wait_all_and_sync();
#pragma unroll
        for (int c = 0; c < kAcross; ++c) load_queries(queries[c], c);
        __syncthreads();  // all warps have loaded their queries, so keys and values may overwrite them
    }

    // Start the copies of the next tile. The order is tile 0 of k, tile 0 of v, tile 1 of k, and so on.
    const llmk::SwizzledCopier<T, DIM, S::kThreads> copier(kv_stride);
    const T* next_keys = k + first_key_token * kv_stride + kv_head * HEAD_DIM;
    const T* next_values = v + first_key_token * kv_stride + kv_head * HEAD_DIM;
    int keys_left = key_end, values_left = key_end;
    auto start_copy = [&](bool of_keys, int slot) {
        const T*& from = of_keys ? next_keys : next_values;
        int& left = of_keys ? keys_left : values_left;
        if (left > 0) {
            if constexpr (HEAD_DIM == DIM) {
                copier.template copy<kKeys>(ring + slot * S::kTile, from, left);
            } else {
                copy_narrow_rows<HEAD_DIM, kKeys>(ring + slot * S::kTile, from, kv_stride, left);
            }
        }
        __pipeline_commit();  // one group per tile; past the last tile it is empty
        from += kKeys * kv_stride;
        left -= kKeys;
    };
    // Wait for the next tile in the ring. After the barrier no thread reads the previous tile, so the copy of the tile
    // farthest ahead may overwrite it.
    int slot = 0;
    auto next_tile = [&](bool of_keys) {
        __pipeline_wait_prior(S::kStages - 2);
        __syncthreads();
        const T* tile = ring + slot * S::kTile;
        start_copy(S::kStages % 2 == 1 ? of_keys : !of_keys, slot == 0 ? S::kStages - 1 : slot - 1);
        slot = slot == S::kStages - 1 ? 0 : slot + 1;
        return tile;
    };
#pragma unroll
    for (int i = 0; i < S::kStages - 1; ++i) start_copy(i % 2 == 0, i);

    // The state of rows lane / 4 (h = 0) and lane / 4 + 8 (h = 1) of each stripe: output, reference and sum.
    float o[kStripes][2 * kAcross][4] = {};
    float m[kStripes][2],
        l[kStripes][2];  // m: reference of the row's scores; l: this lane's part of the sum of weights
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
        m[i][0] = m[i][1] = -INFINITY;
        l[i][0] = l[i][1] = 0;
    }
    const float to_base_2 = scale * llmk::kLog2E;

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        const bool needed = first_key < warp_most;  // true if this warp sees a key of the tile
        unsigned weights[kStripes][kKeys / 16][4];
        const T* k_tile = next_tile(true);
        if (needed) {
            // S = Q K^T. A row of k is a column of operand B, so ldmatrix loads the layout of mma.sync untransposed.
            float s[kStripes][kKeys / 8][4] = {};
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
                unsigned (&part)[kStripes][4] = queries[S::kKeepQueries ? c : 0];
                if constexpr (!S::kKeepQueries) load_queries(part, c);
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    unsigned keys[4];
                    llmk::ldmatrix_x4(keys, k_tile + j * 16 * DIM + Layout::offset(my_key, my_key_column, c));
#pragma unroll
                    for (int i = 0; i < kStripes; ++i) {
                        llmk::mma_m16n8k16<T>(s[i][2 * j], part[i], keys[0], keys[1]);
                        llmk::mma_m16n8k16<T>(s[i][2 * j + 1], part[i], keys[2], keys[3]);
                    }
                }
            }
            if (first_key + kKeys > warp_all) {  // some row sees only a part of the tile
#pragma unroll
                for (int i = 0; i < kStripes; ++i) {
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const int seen = seen_by(warp_row + i * 16 + h * 8 + lane / 4) - first_key - lane % 4 * 2;
#pragma unroll
                        for (int j = 0; j < kKeys / 8; ++j) {
                            if (j * 8 >= seen) s[i][j][2 * h] = -INFINITY;
                            if (j * 8 + 1 >= seen) s[i][j][2 * h + 1] = -INFINITY;
                        }
                    }
                }
            }

            // The online softmax, in f32. The four lanes of a row share its maximum; their sums are added at the end.
            bool moved = false;
            float correction[kStripes][2];
#pragma unroll
            for (int i = 0; i < kStripes; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    float largest = llmk::row_max(s[i], h, m[i][h]);
                    largest = llmk::warp_max<4>(largest);
                    correction[i][h] = llmk::update_running_max(m[i][h], largest, to_base_2, kSlack);
                    moved = moved || correction[i][h] != 1;
                    const float base = llmk::finite_max_or_zero(m[i][h]) * to_base_2;
                    l[i][h] = l[i][h] * correction[i][h] + llmk::softmax_weights(s[i], h, to_base_2, base);
                }
                llmk::pack_weights<T>(weights[i], s[i]);
            }
            if (__any_sync(0xffffffff, moved)) {
#pragma unroll
                for (int i = 0; i < kStripes; ++i) {
#pragma unroll
                    for (int c = 0; c < 2 * kAcross; ++c) {
#pragma unroll
                        for (int e = 0; e < 4; ++e) o[i][c][e] *= correction[i][e / 2];
                    }
                }
            }
        }

        const T* v_tile = next_tile(false);
        if (needed) {
            // O += P V. A row of v is a row of operand B: ldmatrix_x4_trans pairs elements that lie one above the
            // other.
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
#pragma unroll
                for (int c = 0; c < kAcross; ++c) {
                    unsigned values[4];
                    llmk::ldmatrix_x4_trans(values,
                                            v_tile + j * 16 * DIM + Layout::offset(my_value, my_value_column, c));
#pragma unroll
                    for (int i = 0; i < kStripes; ++i) {
                        llmk::mma_m16n8k16<T>(o[i][2 * c], weights[i][j], values[0], values[1]);
                        llmk::mma_m16n8k16<T>(o[i][2 * c + 1], weights[i][j], values[2], values[3]);
                    }
                }
            }
        }
    }
    llmk::cp_async_wait_all_and_sync();  // all threads are done with the last tiles: rows of out may overwrite them

    // Normalize, round once, and store through this warp's own rows of the query tile, 16 bytes per lane.
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float inverse = llmk::reciprocal_or_zero(llmk::warp_sum<4>(l[i][h]));
#pragma unroll
            for (int c = 0; c < 2 * kAcross; ++c) {
                const int row = warp_row + i * 16 + h * 8 + lane / 4;
                *reinterpret_cast<unsigned*>(q_tile + Layout::offset(row, c % 2 * 8, c / 2) + lane % 4 * 2) =
                    llmk::pack_pair<T>(o[i][c][2 * h] * inverse, o[i][c][2 * h + 1] * inverse);
            }
        }
    }
    __syncwarp();  // all lanes have written their parts of the warp's rows
    for (int i = lane; i < kRows * HEAD_DIM / kPiece; i += 32) {
        const int row = warp_row + i / (HEAD_DIM / kPiece), column = i % (HEAD_DIM / kPiece) * kPiece;
        if (row >= there) break;
        const long long token = first_token + query_of(row);
        *reinterpret_cast<Piece<HEAD_DIM>*>(out + (token * heads + head_of(row)) * HEAD_DIM + column) =
            *reinterpret_cast<const Piece<HEAD_DIM>*>(q_tile + Layout::offset(row, column));
    }
}

template <typename T, int HEAD_DIM>
void launch(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int batch,
            int max_queries, int heads, int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal,
            cudaStream_t stream) {
    using S = Shape<HEAD_DIM>;
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid(static_cast<unsigned>((rows + S::kQueries - 1) / S::kQueries), kv_heads, batch);
    cudaFuncSetAttribute(attend<T, HEAD_DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared);
    attend<T, HEAD_DIM><<<grid, S::kThreads, S::kShared, stream>>>(q, k, v, query_starts, key_starts, out, heads,
                                                                   kv_heads, q_stride, kv_stride, scale, causal);
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

extern "C" void mma_flash_attention_f16(const __half* q, const __half* k, const __half* v, const int* query_starts,
                                        const int* key_starts, __half* out, int batch, int max_queries, int heads,
                                        int kv_heads, int head_dim, long long q_stride, long long kv_stride,
                                        float scale, bool causal, cudaStream_t stream) {
    mma_flash_attention(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, head_dim, q_stride,
                        kv_stride, scale, causal, stream);
}

extern "C" void mma_flash_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                         const int* query_starts, const int* key_starts, __nv_bfloat16* out, int batch,
                                         int max_queries, int heads, int kv_heads, int head_dim, long long q_stride,
                                         long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    mma_flash_attention(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, head_dim, q_stride,
                        kv_stride, scale, causal, stream);
}
