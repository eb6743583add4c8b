// Sliding-window attention, f16 or bf16: query i sees the `window` keys that end with its own position.
//
// Day 8's kernel on tensor cores, with two changes. First, the band: a block starts at the first tile of keys that any
// of its queries sees, instead of at key 0, and within the band a warp skips the tiles that none of its own queries
// sees. Second, mma.sync in place of WMMA: which lane holds which element of a fragment is documented, so the lanes do
// the softmax on the scores where they are. These never leave the registers: the accumulators of one product, made weights and
// rounded, are operand A of the next, with every element in its place already.
//
//   q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeys = 64;  // of one tile

// Sizes for heads of up to DIM columns. A warp with two stripes of queries uses each fragment of k and v twice, but its
// accumulators fill the registers, so that two blocks fit on a streaming multiprocessor (SM). At 64 columns four blocks, of half as many
// queries each, were faster on an H200: more of them compute while one waits, and they compute less beside the band.
template <int DIM>
struct Shape {
    static constexpr int kStripes = DIM <= 64 ? 1 : 2;  // of 16 queries each: the height of an mma.sync
    static constexpr int kRows = 16 * kStripes;         // queries of a warp
    static constexpr int kQueries = kRows * kWarps;
    static constexpr int kBlocks = DIM <= 64 ? 4 : 2;                              // on an SM at a time
    static constexpr int kPitch = llmk::RowCopier<__half, DIM, kThreads>::kPitch;  // elements of a row
    static constexpr int kShared = 2 * (kQueries + 2 * kKeys) * kPitch;            // bytes of the tiles of q, k and v
};

template <typename T, int DIM>
__global__ void __launch_bounds__(kThreads, Shape<DIM>::kBlocks)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
           int query_len, int key_len, int head_dim, int window, float scale, bool vectors) {
    using S = Shape<DIM>;
    constexpr int kStripes = S::kStripes, kRows = S::kRows, kQueries = S::kQueries;
    constexpr int kAcross = DIM / 8;  // fragments of 8 columns across a row of out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);   // [kQueries][kPitch]; at the end the rows of out
    T* k_tile = q_tile + kQueries * S::kPitch;  // [kKeys][kPitch]
    T* v_tile = k_tile + kKeys * S::kPitch;     // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const int tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / tiles;
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * kQueries;  // the longest rows first
    const long long offset = static_cast<long long>(key_len) - query_len;
    // A query sees the keys from `begin_of` up to, but without, `end_of`.
    auto end_of = [&](int query) { return static_cast<int>(min(query + offset + 1, static_cast<long long>(key_len))); };
    auto begin_of = [&](int query) { return static_cast<int>(max(query + offset + 1 - window, 0LL)); };
    const int first_row = first_query + warp * kRows, last_row = first_row + kRows - 1;
    const int warp_begin = begin_of(first_row), warp_end = end_of(last_row);  // some row of the warp sees these
    const int all_begin = begin_of(last_row), all_end = end_of(first_row);    // every row of the warp sees these
    const int key_begin = begin_of(first_query) / kKeys * kKeys, key_end = end_of(first_query + kQueries - 1);
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += (head * key_len + key_begin) * head_dim;
    v += (head * key_len + key_begin) * head_dim;
    const llmk::RowCopier<T, DIM, kThreads> copier(head_dim, vectors);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    if (key_begin < key_end) copier.template copy<kKeys>(k_tile, k, key_len - key_begin);

    // Scores are compared before they are scaled, which finds the largest if scale > 0. If it is not, the queries take
    // its sign, once.
    if (scale <= 0) {
        llmk::wait_for_copies();
        for (int i = threadIdx.x; i < kQueries * DIM; i += kThreads) {
            T* element = q_tile + i / DIM * S::kPitch + i % DIM;
            *element = static_cast<T>(scale < 0 ? -static_cast<float>(*element) : 0.0f);
        }
    }
    const float to_base_2 = (scale == 0 ? 1 : fabsf(scale)) * llmk::kLog2E;

    // A lane holds a quarter of two rows of each stripe: of row lane / 4 (h = 0) and of row lane / 4 + 8 (h = 1).
    float o[kStripes][kAcross][4] = {};
    float m[kStripes][2], l[kStripes][2];  // the largest score so far; this lane's part of the sum of the weights
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            m[i][h] = -INFINITY;
            l[i][h] = 0;
        }
    }
    // The row that this lane names to load_matrices, in the first fragment of each tile.
    const T* my_queries = q_tile + (warp * kRows + lane % 16) * S::kPitch + lane / 16 * 8;
    const T* my_keys = k_tile + (lane % 8 + lane / 16 * 8) * S::kPitch + lane / 8 % 2 * 8;
    const T* my_values = v_tile + lane % 16 * S::kPitch + lane / 16 * 8;

    for (int first_key = key_begin; first_key < key_end; first_key += kKeys) {
        llmk::wait_for_copies();  // this tile of k is here, and no thread reads the tile of v before any more
        copier.template copy<kKeys>(v_tile, v, key_len - first_key);
        v += static_cast<long long>(kKeys) * head_dim;

        const bool needed = first_key + kKeys > warp_begin && first_key < warp_end;  // by this warp
        unsigned weights[kStripes][kKeys / 16][4];
        if (needed) {
            // S = Q K^T. A row of k is a column of operand B, so its neighbours lie as multiply wants them.
            float s[kStripes][kKeys / 8][4] = {};
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c) {
                unsigned queries[kStripes][4];
#pragma unroll
                for (int i = 0; i < kStripes; ++i)
                    llmk::load_matrices(queries[i], my_queries + i * 16 * S::kPitch + c * 16);
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    unsigned keys[4];
                    llmk::load_matrices(keys, my_keys + j * 16 * S::kPitch + c * 16);
#pragma unroll
                    for (int i = 0; i < kStripes; ++i) {
                        llmk::multiply<T>(s[i][2 * j], queries[i], keys[0], keys[1]);
                        llmk::multiply<T>(s[i][2 * j + 1], queries[i], keys[2], keys[3]);
                    }
                }
            }
            if (first_key < all_begin || first_key + kKeys > all_end) {  // a tile that some row sees in part
#pragma unroll
                for (int i = 0; i < kStripes; ++i) {
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const int query = first_row + i * 16 + h * 8 + lane / 4;
                        const int begin = begin_of(query), end = end_of(query);
#pragma unroll
                        for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                            for (int e = 0; e < 2; ++e) {
                                const int key = first_key + j * 8 + lane % 4 * 2 + e;
                                if (key < begin || key >= end) s[i][j][2 * h + e] = -INFINITY;
                            }
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
                    float largest = m[i][h];
#pragma unroll
                    for (int j = 0; j < kKeys / 8; ++j) {
                        largest = fmaxf(largest, fmaxf(s[i][j][2 * h], s[i][j][2 * h + 1]));
                    }
                    largest = llmk::warp_max<4>(largest);
                    const float base = llmk::base_of(largest);
                    correction[i][h] = llmk::power_of_2((m[i][h] - base) * to_base_2);
                    moved = moved || correction[i][h] < 1;
                    m[i][h] = largest;
                    float sum[2] = {};
#pragma unroll
                    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            float& score = s[i][j][2 * h + e];
                            score = llmk::power_of_2(score * to_base_2 - base * to_base_2);  // one fused multiply-add
                            sum[e] += score;
                        }
                    }
                    l[i][h] = l[i][h] * correction[i][h] + (sum[0] + sum[1]);
                }
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {  // two fragments of 8 keys make an operand A of 16
                    weights[i][j][0] = llmk::pair<T>(s[i][2 * j][0], s[i][2 * j][1]);
                    weights[i][j][1] = llmk::pair<T>(s[i][2 * j][2], s[i][2 * j][3]);
                    weights[i][j][2] = llmk::pair<T>(s[i][2 * j + 1][0], s[i][2 * j + 1][1]);
                    weights[i][j][3] = llmk::pair<T>(s[i][2 * j + 1][2], s[i][2 * j + 1][3]);
                }
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
        }

        llmk::wait_for_copies();  // this tile of v is here, and no thread reads the tile of k any more
        k += static_cast<long long>(kKeys) * head_dim;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_len - first_key - kKeys);

        if (needed) {
            // O += P V
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
#pragma unroll
                for (int c = 0; c < DIM / 16; ++c) {
                    unsigned values[4];
                    llmk::load_transposed(values, my_values + j * 16 * S::kPitch + c * 16);
#pragma unroll
                    for (int i = 0; i < kStripes; ++i) {
                        llmk::multiply<T>(o[i][2 * c], weights[i][j], values[0], values[1]);
                        llmk::multiply<T>(o[i][2 * c + 1], weights[i][j], values[2], values[3]);
                    }
                }
            }
        }
    }
    llmk::wait_for_copies();  // if no query sees a key, the queries may still be on their way

    // Divide, round once, and write through this warp's own rows of the queries' tile, 16 bytes a lane.
    T* rows = q_tile + warp * kRows * S::kPitch;
#pragma unroll
    for (int i = 0; i < kStripes; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float inverse = llmk::inverse_of(llmk::warp_sum<4>(l[i][h]));
            T* row = rows + (i * 16 + h * 8 + lane / 4) * S::kPitch + lane % 4 * 2;
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
                *reinterpret_cast<unsigned*>(row + c * 8) =
                    llmk::pair<T>(o[i][c][2 * h] * inverse, o[i][c][2 * h + 1] * inverse);
            }
        }
    }
    __syncwarp();  // all lanes have written their parts of the warp's rows
    for (int i = lane; i < kRows * DIM / 8; i += 32) {
        const int r = i / (DIM / 8), column = i % (DIM / 8) * 8;
        if (first_row + r >= query_len || column >= head_dim) continue;
        const T* from = rows + r * S::kPitch + column;
        T* to = out + static_cast<long long>(warp * kRows + r) * head_dim + column;
        if (vectors) {
            *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
        } else {
            for (int j = 0; j < 8; ++j) to[j] = from[j];
        }
    }
}

template <typename T, int DIM>
void launch(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len, int head_dim,
            int window, float scale, cudaStream_t stream) {
    using S = Shape<DIM>;
    const long long tiles = (query_len + S::kQueries - 1) / S::kQueries;
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
