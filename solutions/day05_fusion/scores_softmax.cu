// Attention weights in one kernel: out = softmax(scale * q k^T), f16 in and out, f32 scores, any number of keys.
//
// A row of scores may be longer than a block can hold, so the kernel walks over the keys twice. The first walk finds
// the maximum and the sum of every row by the online softmax. The second walk computes the scores again and writes
// their exponentials. The second matmul costs arithmetic, which is cheaper than writing the scores and reading them
// back.
//
// The matmul uses mma.sync.m16n8k16, whose layout is documented: lane 4 g + t holds, for rows g and g + 8, columns 2 t
// and 2 t + 1. So four lanes share a row. The order of the keys in shared memory decides which key is "column 2 t of
// tile j". It is chosen so that each lane gets eight neighboring keys, and writes their weights as 16 bytes.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"

constexpr int kQueries = 128;     // queries per block
constexpr int kWarpQueries = 32;  // queries per warp: two MMAs of 16 rows share each fragment of keys
constexpr int kThreads = kQueries / kWarpQueries * 32;
constexpr int kKeys = 64;          // keys per tile
constexpr int kGroup = 32;         // keys whose scores are in registers at a time: four MMAs of 8
constexpr int kStages = 3;         // tiles of keys in flight or in use
constexpr int kVector = 8;         // elements in 16 bytes
constexpr float kLowest = -1e30f;  // below every score; unlike with -infinity, differences are never NaN
static_assert(kQueries <= kStages * kKeys, "the queries pass through the memory of the keys");

// Return the key that is stored in row `row` of a tile in shared memory. This only permutes the bits of the row, so
// key_of(a + b) = key_of(a) + key_of(b) if a and b have no bit in common.
__host__ __device__ constexpr int key_of(int row) {
    return row / kGroup * kGroup + row % 8 / 2 * 8 + row % kGroup / 8 * 2 + row % 2;
}

// q: [batch * heads, query_len, head_dim]   k: [batch * heads, key_len, head_dim]   out: [batch * heads, query_len, key_len]
// D: 64 or 128, at least head_dim   VECTORS: rows of q and k start at multiples of 16 bytes
// wide_out: rows of out start at multiples of 16 bytes
template <int D, bool VECTORS>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 4 : 3)
    scores_softmax_kernel(const __half* __restrict__ q, const __half* __restrict__ k, __half* __restrict__ out,
                          int query_len, int key_len, int head_dim, float scale_log2, bool causal, bool wide_out) {
    constexpr int kRow = D + kVector;    // a row in shared memory: eight of them start in different banks
    constexpr int kLanes = D / kVector;  // threads that copy a row together
    constexpr int kRowsAtOnce = kThreads / kLanes;
    constexpr int kSteps = D / 16;       // MMA steps over head_dim
    constexpr int kBlocks = kGroup / 8;  // MMAs of 8 keys in a group
    extern __shared__ __align__(128) unsigned char shared[];
    __half* stages = reinterpret_cast<__half*>(shared);  // [kStages][kKeys][kRow]

    const int query_tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / query_tiles;
    // Under a causal mask the last queries see the most keys: they start first.
    const int query0 = (query_tiles - 1 - static_cast<int>(blockIdx.x % query_tiles)) * kQueries;
    q += head * query_len * head_dim;
    k += head * key_len * head_dim;
    out += head * query_len * key_len;

    const int lane = threadIdx.x % 32, lane_row = lane / 4, lane_key = lane % 4 * kVector;
    const int warp_query = query0 + static_cast<int>(threadIdx.x) / 32 * kWarpQueries;
    auto visible = [&](int query) {  // return the number of keys that a query sees
        return causal ? max(0, min(key_len, query + 1 + key_len - query_len)) : key_len;
    };
    const int tiles = (visible(min(query0 + kQueries, query_len) - 1) + kKeys - 1) / kKeys;

    const int copied_row = threadIdx.x / kLanes, copied_column = threadIdx.x % kLanes * kVector;
    for (int row = copied_row; row < kQueries; row += kRowsAtOnce) {
        const __half* source = q + static_cast<long long>(query0 + row) * head_dim + copied_column;
        llmk::cp_async_16<VECTORS>(stages + row * kRow + copied_column, source, query0 + row < query_len,
                                   head_dim - copied_column);
    }
    __pipeline_commit();
    llmk::cp_async_wait_all_and_sync();
    unsigned queries[2][kSteps][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int row = warp_query - query0 + m * 16 + lane % 16;
            llmk::ldmatrix_x4(queries[m][step], stages + row * kRow + step * 16 + lane / 16 * 8);
        }
    }
    __syncthreads();  // the queries are in registers, so their shared memory can be reused

    // Both walks over the keys form one sequence of 2 * tiles rounds, so that the first walk prefetches tiles of the
    // second.
    auto copy_tile = [&](int round) {
        if (round < 2 * tiles) {
            const int key0 = (round < tiles ? round : round - tiles) * kKeys + key_of(copied_row);
            __half* stage = stages + round % kStages * (kKeys * kRow) + copied_row * kRow + copied_column;
#pragma unroll
            for (int i = 0; i < kKeys / kRowsAtOnce; ++i) {
                const int key = key0 + key_of(i * kRowsAtOnce);
                const __half* source = k + static_cast<long long>(key) * head_dim + copied_column;
                llmk::cp_async_16<VECTORS>(stage + i * kRowsAtOnce * kRow, source, key < key_len,
                                           head_dim - copied_column);
            }
        }
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };
    auto next_tile = [&](int round) {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of this round's tile have arrived ...
        __syncthreads();  // ... and all threads' copies; all warps have used the tile that is overwritten next
        copy_tile(round + kStages - 1);
        return stages + round % kStages * (kKeys * kRow);
    };
    // Scores of 32 queries and kGroup keys. scores[m][j][2 h + e]: query warp_query + 16 m + 8 h + lane_row,
    // key key0 + lane_key + 2 j + e.
    auto make_scores = [&](float (&scores)[2][kBlocks][4], const __half* group, int key0) {
#pragma unroll
        for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) scores[0][j][i] = scores[1][j][i] = 0.0f;
#pragma unroll
            for (int step = 0; step < kSteps; step += 2) {
                unsigned keys[4];
                llmk::ldmatrix_x4(keys, group + (j * 8 + lane % 8) * kRow + step * 16 + lane / 8 * 8);
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    llmk::mma_m16n8k16<__half>(scores[m][j], queries[m][step], keys[0], keys[1]);
                    llmk::mma_m16n8k16<__half>(scores[m][j], queries[m][step + 1], keys[2], keys[3]);
                }
            }
        }
        if (key0 + kGroup <= visible(warp_query)) return;  // the first query of the warp sees the fewest keys
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int query = warp_query + m * 16 + i / 2 * 8 + lane_row;
                    if (key0 + lane_key + 2 * j + i % 2 >= visible(query)) scores[m][j][i] = -INFINITY;
                }
            }
        }
    };

    for (int round = 0; round < kStages - 1; ++round) copy_tile(round);
    float maximum[2][2] = {{kLowest, kLowest}, {kLowest, kLowest}}, sum[2][2] = {};
    for (int round = 0; round < tiles; ++round) {
        const __half* tile = next_tile(round);
#pragma unroll 1  // unrolling would exceed the registers and the innermost instruction cache
        for (int g = 0; g < kKeys; g += kGroup) {
            float scores[2][kBlocks][4];
            make_scores(scores, tile + g * kRow, round * kKeys + g);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    float largest = maximum[m][h];
#pragma unroll
                    for (int j = 0; j < kBlocks; ++j) {
                        largest = fmaxf(largest, fmaxf(scores[m][j][2 * h], scores[m][j][2 * h + 1]));
                    }
                    const float shift = largest * scale_log2;
                    float added = 0.0f;
#pragma unroll
                    for (int j = 0; j < kBlocks; ++j) {
                        added += llmk::ex2_approx(fmaf(scores[m][j][2 * h], scale_log2, -shift));
                        added += llmk::ex2_approx(fmaf(scores[m][j][2 * h + 1], scale_log2, -shift));
                    }
                    // Do not write maximum * scale_log2 - shift: nvcc contracts that to an fmaf with an exact product,
                    // but `shift` is a rounded product. If both maxima were kLowest, the difference would be the
                    // rounding error of 1e30 instead of 0.
                    sum[m][h] = sum[m][h] * llmk::ex2_approx((maximum[m][h] - largest) * scale_log2) + added;
                    maximum[m][h] = largest;
                }
            }
        }
    }

    // The four lanes of a row combine their results. exp(score - maximum) / sum = 2^(score * scale_log2 - shift)
    float shift[2][2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float largest = llmk::warp_max<4>(maximum[m][h]);
            const float mine = sum[m][h] * llmk::ex2_approx((maximum[m][h] - largest) * scale_log2);
            const float total = llmk::warp_sum<4>(mine);
            // A query that sees no key has a total of 0; all its scores are -infinity, and 2^-infinity = 0.
            shift[m][h] = total > 0.0f ? largest * scale_log2 + log2f(total) : 0.0f;
        }
    }

    for (int round = tiles; round < 2 * tiles; ++round) {
        const __half* tile = next_tile(round);
#pragma unroll 1  // unrolling would exceed the registers and the innermost instruction cache
        for (int g = 0; g < kKeys; g += kGroup) {
            const int key0 = (round - tiles) * kKeys + g;
            float scores[2][kBlocks][4];
            make_scores(scores, tile + g * kRow, key0);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    uint4 bits;
                    unsigned* pairs = reinterpret_cast<unsigned*>(&bits);
#pragma unroll
                    for (int j = 0; j < kBlocks; ++j) {
                        pairs[j] = llmk::pack_pair<__half>(
                            llmk::ex2_approx(fmaf(scores[m][j][2 * h], scale_log2, -shift[m][h])),
                            llmk::ex2_approx(fmaf(scores[m][j][2 * h + 1], scale_log2, -shift[m][h])));
                    }
                    const int query = warp_query + m * 16 + h * 8 + lane_row, key = key0 + lane_key;
                    if (query >= query_len || key >= key_len) continue;
                    __half* to = out + static_cast<long long>(query) * key_len + key;
                    if (wide_out) {
                        *reinterpret_cast<uint4*>(to) = bits;
                    } else {
                        const __half* from = reinterpret_cast<const __half*>(&bits);
#pragma unroll
                        for (int j = 0; j < kVector; ++j) {
                            if (key + j < key_len) to[j] = from[j];
                        }
                    }
                }
            }
        }
    }

    // Write zeros for the keys that no query of the block sees. Each warp writes its own rows.
    for (int query = warp_query; query < min(warp_query + kWarpQueries, query_len); ++query) {
        __half* row = out + static_cast<long long>(query) * key_len;
        if (wide_out) {
            for (int key = tiles * kKeys + lane * kVector; key < key_len; key += 32 * kVector) {
                *reinterpret_cast<uint4*>(row + key) = make_uint4(0, 0, 0, 0);
            }
        } else {
            for (int key = tiles * kKeys + lane; key < key_len; key += 32) row[key] = __half(0.0f);
        }
    }
}

template <int D>
void launch(const __half* q, const __half* k, __half* out, long long heads, int query_len, int key_len, int head_dim,
            float scale, bool causal, cudaStream_t stream) {
    constexpr size_t shared_bytes = sizeof(__half) * kStages * kKeys * (D + kVector);
    const long long blocks = heads * ((query_len + kQueries - 1) / kQueries);
    const auto kernel =
        llmk::rows_are_aligned(head_dim, q, k) ? scores_softmax_kernel<D, true> : scores_softmax_kernel<D, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes, stream>>>(
        q, k, out, query_len, key_len, head_dim, scale * llmk::kLog2E, causal, llmk::rows_are_aligned(key_len, out));
}

// q: [batch, heads, query_len, head_dim]   k: [batch, heads, key_len, head_dim]   out: [batch, heads, query_len, key_len]
extern "C" void scores_softmax(const __half* q, const __half* k, __half* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || key_len == 0) return;
    const long long all_heads = static_cast<long long>(batch) * heads;
    if (head_dim <= 64) {
        launch<64>(q, k, out, all_heads, query_len, key_len, head_dim, scale, causal, stream);
    } else {
        launch<128>(q, k, out, all_heads, query_len, key_len, head_dim, scale, causal, stream);
    }
}
