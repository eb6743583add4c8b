// Sliding-window attention, f16 or bf16: query i sees the `window` keys that end with its own position.
//
// This is day 8's kernel on tensor cores, with three changes:
// - The band: a block starts at the first tile of keys that any of its queries sees, instead of at key 0. Within the
//   band a warp skips the tiles that none of its own queries sees.
// - mma.sync in place of WMMA: its fragment layout is documented, so the lanes compute the softmax on the accumulators.
//   The scores stay in registers: rounded to T, the weights are operand A of the second matmul, with every element in
//   place.
// - The tiles are swizzled (day 12) instead of padded: with 16 bytes of padding per row, cp.async makes two requests to
//   the L2 cache for every second row.
//
//   q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/mma_softmax.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/swizzle.cuh"
#include "llmk/vector.cuh"

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeys = 64;  // keys per tile
constexpr int kSlots = 2;  // buffers for a tile of keys and its values: one in use, one in flight

// Sizes for heads of up to DIM columns. A warp with two stripes of queries uses each fragment of k and v twice, but its
// accumulators fill the registers, so only two blocks fit on a streaming multiprocessor (SM). At 64 columns, four
// blocks of half as many queries were faster on an H200: more blocks compute while one waits, and fewer pairs lie
// outside the band.
template <int DIM>
struct Shape {
    static constexpr int kStripes = DIM <= 64 ? 1 : 2;  // stripes per warp, of 16 queries each (M of mma.sync)
    static constexpr int kRows = 16 * kStripes;         // queries per warp
    static constexpr int kQueries = kRows * kWarps;
    static constexpr int kBlocks = DIM <= 64 ? 4 : 2;                          // resident blocks per SM
    static constexpr bool kKeep = DIM <= 64;                                   // keep a warp's queries in registers
    static constexpr int kTile = kKeys * DIM;                                  // elements of a tile
    static constexpr int kShared = 2 * (kQueries * DIM + kSlots * 2 * kTile);  // bytes of the tiles of q, k and v
};

// A row is rescaled only if a score exceeds its reference by more than this power of 2. Weights are then at most
// 2^kSlack, which both types represent.
constexpr float kSlack = 8;

// VECTORS: q, k, v and out, and so all their rows, are 16-byte aligned.
template <typename T, int DIM, bool VECTORS>
__global__ void __launch_bounds__(kThreads, Shape<DIM>::kBlocks)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
           int query_len, int key_len, int head_dim, int window, float scale) {
    using S = Shape<DIM>;
    using Layout = llmk::Swizzle<DIM>;
    constexpr int kStripes = S::kStripes, kRows = S::kRows, kQueries = S::kQueries;
    constexpr int kAcross = DIM / 8;  // fragments of 8 columns across a row of out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);  // [kQueries][DIM]; reused for the rows of out
    T* ring = q_tile + kQueries * DIM;         // [kSlots][2][kKeys][DIM]: keys, values
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const int tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / tiles;
    // The last queries see the most keys, so they start first.
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * kQueries;
    const long long offset = static_cast<long long>(key_len) - query_len;
    // A query sees the keys begin_of(query) ... end_of(query) - 1.
    auto end_of = [&](int query) { return static_cast<int>(min(query + offset + 1, static_cast<long long>(key_len))); };
    auto begin_of = [&](int query) { return static_cast<int>(max(query + offset + 1 - window, 0LL)); };
    const int first_row = first_query + warp * kRows, last_row = first_row + kRows - 1;
    const int warp_begin = begin_of(first_row), warp_end = end_of(last_row);  // seen by at least one row of the warp
    const int all_begin = begin_of(last_row), all_end = end_of(first_row);    // seen by every row of the warp
    const int key_begin = begin_of(first_query) / kKeys * kKeys, key_end = end_of(first_query + kQueries - 1);
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += (head * key_len + key_begin) * head_dim;
    v += (head * key_len + key_begin) * head_dim;
    const llmk::RowCopier<T, DIM, kThreads, Layout> copier(head_dim, VECTORS);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);

    // The kernel compares scores before it scales them, which is right only if scale > 0. Otherwise it multiplies the
    // queries by the sign of the scale once.
    if (scale <= 0) {
        llmk::cp_async_wait_all_and_sync();
        for (int i = threadIdx.x; i < kQueries * DIM; i += kThreads) {
            T* element = q_tile + Layout::offset(i / DIM, i % DIM);
            *element = static_cast<T>(scale < 0 ? -static_cast<float>(*element) : 0.0f);
        }
    }
    const float to_base_2 = (scale == 0 ? 1 : fabsf(scale)) * llmk::kLog2E;

    // Start the copy of the next tile of k and of v to one of the slots. Past the last tile it does
    // nothing.
    const long long start = VECTORS ? copier.start : 0;
    const T *next_k = k + start, *next_v = v + start;
    int tiles_left = key_begin < key_end ? (key_end - key_begin + kKeys - 1) / kKeys : 0;
    int keys_left = key_len - key_begin;
    auto copy_tile = [&](T* tile, const T* from) {
        if constexpr (!VECTORS) {
            copier.template copy<kKeys>(tile, from, keys_left);
        } else if (keys_left >= kKeys && head_dim == DIM) {
            copier.template copy_own<kKeys, true>(tile, from, keys_left);
        } else {
            copier.template copy_own<kKeys>(tile, from, keys_left);
        }
    };
    auto start_copy = [&](int slot) {
        if (tiles_left-- <= 0) return;
        T* tile = ring + slot * 2 * S::kTile;
        copy_tile(tile, next_k);
        copy_tile(tile + S::kTile, next_v);
        next_k += static_cast<long long>(kKeys) * head_dim;
        next_v += static_cast<long long>(kKeys) * head_dim;
        keys_left -= kKeys;
    };
    start_copy(0);
    // The offset of the row that this lane passes to ldmatrix for the first fragment, in bytes from the start of the
    // tile.
    const unsigned my_query = 2 * Layout::offset(warp * kRows + lane % 16, lane / 16 * 8);
    const unsigned my_key = 2 * Layout::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
    const unsigned my_value = 2 * Layout::offset(lane % 16, lane / 16 * 8);
    constexpr int kDown = 2 * 16 * DIM;  // bytes from a fragment to the fragment below it
    unsigned queries[kStripes][S::kKeep ? DIM / 16 : 1][4];
    auto load_queries = [&](int to, int c) {
        const unsigned from = Layout::advance(llmk::shared_address(q_tile) + my_query, c);
#pragma unroll
        for (int i = 0; i < kStripes; ++i) llmk::ldmatrix_x4(queries[i][to], from + i * kDown);
    };
    if constexpr (S::kKeep) {
        llmk::cp_async_wait_all_and_sync();
#pragma unroll
        for (int c = 0; c < DIM / 16; ++c) load_queries(c, c);
    }

    // A lane holds a quarter of two rows of each stripe: of row lane / 4 (h = 0) and of row lane / 4 + 8 (h = 1).
    float o[kStripes][kAcross][4] = {};
    float m[kStripes][2], l[kStripes][2];  // the reference of the scores; this lane's part of the sum of the weights
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            m[i][h] = -INFINITY;
            l[i][h] = 0;
        }
    }
    int slot = 0;
    for (int first_key = key_begin; first_key < key_end; first_key += kKeys) {
        llmk::cp_async_wait_all_and_sync();  // this tile has arrived, and no warp reads the previous one
        start_copy(1 - slot);
        const unsigned tile = llmk::shared_address(ring) + slot * 2 * S::kTile * 2;
        const unsigned k_tile = tile + my_key, v_tile = tile + S::kTile * 2 + my_value;
        slot = 1 - slot;
        if (first_key + kKeys <= warp_begin || first_key >= warp_end) continue;  // outside the band of this warp
        unsigned weights[kStripes][kKeys / 16][4];
        // S = Q K^T. A row of k is a column of operand B, so ldmatrix needs no transpose.
        float s[kStripes][kKeys / 8][4] = {};
#pragma unroll
        for (int c = 0; c < DIM / 16; ++c) {
            const int kept = S::kKeep ? c : 0;
            if (!S::kKeep) load_queries(kept, c);
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                unsigned keys[4];
                llmk::ldmatrix_x4(keys, Layout::advance(k_tile, c) + j * kDown);
#pragma unroll
                for (int i = 0; i < kStripes; ++i) {
                    llmk::mma_m16n8k16<T>(s[i][2 * j], queries[i][kept], keys[0], keys[1]);
                    llmk::mma_m16n8k16<T>(s[i][2 * j + 1], queries[i][kept], keys[2], keys[3]);
                }
            }
        }
        if (first_key < all_begin || first_key + kKeys > all_end) {  // some row sees only part of this tile
#pragma unroll
            for (int i = 0; i < kStripes; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int query = first_row + i * 16 + h * 8 + lane / 4;
                    // Count keys from this lane's first key. Then `key` below is a constant after unrolling.
                    const int first = first_key + lane % 4 * 2;
                    const int begin = begin_of(query) - first, end = end_of(query) - first;
#pragma unroll
                    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            const int key = j * 8 + e;
                            if (key < begin || key >= end) s[i][j][2 * h + e] = -INFINITY;
                        }
                    }
                }
            }
        }

        // The online softmax, in f32. The four lanes of a row share its maximum; their sums are added after the loop.
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
                for (int c = 0; c < kAcross; ++c) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) o[i][c][e] *= correction[i][e / 2];
                }
            }
        }

        // O += P V
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c) {
                unsigned values[4];
                llmk::ldmatrix_x4_trans(values, Layout::advance(v_tile, c) + j * kDown);
#pragma unroll
                for (int i = 0; i < kStripes; ++i) {
                    llmk::mma_m16n8k16<T>(o[i][2 * c], weights[i][j], values[0], values[1]);
                    llmk::mma_m16n8k16<T>(o[i][2 * c + 1], weights[i][j], values[2], values[3]);
                }
            }
        }
    }
    llmk::cp_async_wait_all_and_sync();  // if no key was visible, the copy of the queries may still be in flight

    // Divide, round once, and store through this warp's rows of the queries' tile, 16 bytes per lane.
    T* rows = q_tile + warp * kRows * DIM;
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float inverse = llmk::reciprocal_or_zero(llmk::warp_sum<4>(l[i][h]));
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
                T* place = rows + Layout::offset(i * 16 + h * 8 + lane / 4, c * 8) + lane % 4 * 2;
                *reinterpret_cast<unsigned*>(place) =
                    llmk::pack_pair<T>(o[i][c][2 * h] * inverse, o[i][c][2 * h + 1] * inverse);
            }
        }
    }
    __syncwarp();  // all lanes have written their parts of the warp's rows
    for (int i = lane; i < kRows * DIM / 8; i += 32) {
        const int r = i / (DIM / 8), column = i % (DIM / 8) * 8;
        if (first_row + r >= query_len || column >= head_dim) continue;
        const T* from = rows + Layout::offset(r, column);
        T* to = out + static_cast<long long>(warp * kRows + r) * head_dim + column;
        if (VECTORS) {
            *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
        } else {
            for (int j = 0; j < 8; ++j) to[j] = from[j];
        }
    }
}

template <typename T, int DIM, bool VECTORS>
void launch(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len, int head_dim,
            int window, float scale, cudaStream_t stream) {
    using S = Shape<DIM>;
    const long long tiles = (query_len + S::kQueries - 1) / S::kQueries;
    const auto kernel = attend<T, DIM, VECTORS>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared);
    kernel<<<static_cast<unsigned>(tiles * batch * heads), kThreads, S::kShared, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, window, scale);
}

template <typename T>
void sliding_window(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                    int head_dim, int window, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const auto launch_for = !llmk::rows_are_aligned(0, q, k, v, out) ? launch<T, 128, false>
                            : head_dim <= 64                         ? launch<T, 64, true>
                            : head_dim <= 96                         ? launch<T, 96, true>
                                                                     : launch<T, 128, true>;
    launch_for(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
extern "C" void sliding_window_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch, int heads,
                                   int query_len, int key_len, int head_dim, int window, float scale,
                                   cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

extern "C" void sliding_window_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                    __nv_bfloat16* out, int batch, int heads, int query_len, int key_len, int head_dim,
                                    int window, float scale, cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}
