// The scores alone: out = scale * q k^T, -infinity where a causal mask hides the key. f16 in and out, f32 accumulators.
//
// The unfused program is this kernel and then day 2's softmax. This kernel has the structure of the fused solution,
// with one pass over the keys, so that a comparison of fused and unfused shows only the effect of fusion.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kQueries = 128;     // queries of a block
constexpr int kWarpQueries = 32;  // queries of a warp: two MMAs of 16 rows share each fragment of keys
constexpr int kThreads = kQueries / kWarpQueries * 32;
constexpr int kKeys = 64;   // keys of a tile
constexpr int kGroup = 32;  // keys whose scores are in registers at a time: four MMAs of 8
constexpr int kStages = 3;  // tiles of keys in flight or in use
constexpr int kVector = 8;  // elements in 16 bytes
static_assert(kQueries <= kStages * kKeys, "the queries pass through the memory of the keys");

// The key that is stored in row `row` of a tile in shared memory. This only permutes the bits of the row, so
// key_of(a + b) = key_of(a) + key_of(b) if a and b have no bit in common.
__host__ __device__ constexpr int key_of(int row) {
    return row / kGroup * kGroup + row % 8 / 2 * 8 + row % kGroup / 8 * 2 + row % 2;
}

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Four 8 x 8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ void ldmatrix_x4(uint32_t (&r)[4], const __half* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}

__device__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ uint32_t two_halves(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(pair);
}

// Copies 16 bytes of row `row`, from column `column` on, to shared memory, with zeros past the end.
template <bool VECTORS>
__device__ void copy_piece(__half* target, const __half* matrix, long long row, bool there, int column, int columns) {
    const __half* source = matrix + row * columns + column;
    if constexpr (VECTORS) {
        __pipeline_memcpy_async(target, there && column < columns ? source : matrix, 16,
                                there && column < columns ? 0 : 16);
    } else {
        for (int j = 0; j < kVector; ++j) target[j] = there && column + j < columns ? source[j] : __half(0.0f);
    }
}

// q: [batch * heads, query_len, head_dim]   k: [batch * heads, key_len, head_dim]   out: [batch * heads, query_len, key_len]
// D: 64 or 128, at least head_dim   VECTORS: rows of q and k start at multiples of 16 bytes   wide_out: so do rows of out
template <int D, bool VECTORS>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 4 : 3)
    scores_kernel(const __half* __restrict__ q, const __half* __restrict__ k, __half* __restrict__ out, int query_len,
                  int key_len, int head_dim, float scale, bool causal, bool wide_out) {
    constexpr int kRow = D + kVector;    // a row in shared memory: eight of them start in different banks
    constexpr int kLanes = D / kVector;  // threads that copy a row together
    constexpr int kRowsAtOnce = kThreads / kLanes;
    constexpr int kSteps = D / 16;       // MMA steps over head_dim
    constexpr int kBlocks = kGroup / 8;  // MMAs of 8 keys in a group
    extern __shared__ __align__(128) unsigned char shared[];
    __half* stages = reinterpret_cast<__half*>(shared);  // [kStages][kKeys][kRow]

    const int query_tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / query_tiles;
    // Under a causal mask the last queries see the most keys, so their blocks start first.
    const int query0 = (query_tiles - 1 - static_cast<int>(blockIdx.x % query_tiles)) * kQueries;
    q += head * query_len * head_dim;
    k += head * key_len * head_dim;
    out += head * query_len * key_len;

    const int lane = threadIdx.x % 32, lane_row = lane / 4, lane_key = lane % 4 * kVector;
    const int warp_query = query0 + static_cast<int>(threadIdx.x) / 32 * kWarpQueries;
    auto visible = [&](int query) {  // how many keys a query sees
        return causal ? max(0, min(key_len, query + 1 + key_len - query_len)) : key_len;
    };
    const int tiles = (visible(min(query0 + kQueries, query_len) - 1) + kKeys - 1) / kKeys;

    const int copied_row = threadIdx.x / kLanes, copied_column = threadIdx.x % kLanes * kVector;
    for (int row = copied_row; row < kQueries; row += kRowsAtOnce) {
        copy_piece<VECTORS>(stages + row * kRow + copied_column, q, query0 + row, query0 + row < query_len,
                            copied_column, head_dim);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    uint32_t queries[2][kSteps][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int row = warp_query - query0 + m * 16 + lane % 16;
            ldmatrix_x4(queries[m][step], stages + row * kRow + step * 16 + lane / 16 * 8);
        }
    }
    __syncthreads();  // the queries are in registers: their shared memory is free

    auto copy_tile = [&](int round) {
        if (round < tiles) {
            const int key0 = round * kKeys + key_of(copied_row);
            __half* stage = stages + round % kStages * (kKeys * kRow) + copied_row * kRow + copied_column;
#pragma unroll
            for (int i = 0; i < kKeys / kRowsAtOnce; ++i) {
                const int key = key0 + key_of(i * kRowsAtOnce);
                copy_piece<VECTORS>(stage + i * kRowsAtOnce * kRow, k, key, key < key_len, copied_column, head_dim);
            }
        }
        __pipeline_commit();  // possibly an empty group: the wait below counts groups
    };
    auto next_tile = [&](int round) {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of the tile have arrived
        __syncthreads();  // all copies have arrived, and all threads have used the tile that is overwritten next
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
                uint32_t keys[4];
                ldmatrix_x4(keys, group + (j * 8 + lane % 8) * kRow + step * 16 + lane / 8 * 8);
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    multiply(scores[m][j], queries[m][step], keys[0], keys[1]);
                    multiply(scores[m][j], queries[m][step + 1], keys[2], keys[3]);
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
    for (int round = 0; round < tiles; ++round) {
        const __half* tile = next_tile(round);
#pragma unroll 1  // unrolling would exceed the registers and the innermost instruction cache
        for (int g = 0; g < kKeys; g += kGroup) {
            const int key0 = round * kKeys + g;
            float scores[2][kBlocks][4];
            make_scores(scores, tile + g * kRow, key0);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    uint4 bits;
                    uint32_t* pairs = reinterpret_cast<uint32_t*>(&bits);
#pragma unroll
                    for (int j = 0; j < kBlocks; ++j) {
                        pairs[j] = two_halves(scores[m][j][2 * h] * scale, scores[m][j][2 * h + 1] * scale);
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

    // Write -infinity for the keys that no query of the block sees. Each warp writes its own rows.
    const uint32_t hidden = two_halves(-INFINITY, -INFINITY);
    for (int query = warp_query; query < min(warp_query + kWarpQueries, query_len); ++query) {
        __half* row = out + static_cast<long long>(query) * key_len;
        if (wide_out) {
            for (int key = tiles * kKeys + lane * kVector; key < key_len; key += 32 * kVector) {
                *reinterpret_cast<uint4*>(row + key) = make_uint4(hidden, hidden, hidden, hidden);
            }
        } else {
            for (int key = tiles * kKeys + lane; key < key_len; key += 32) row[key] = __half(-INFINITY);
        }
    }
}

template <int D>
void launch(const __half* q, const __half* k, __half* out, long long heads, int query_len, int key_len, int head_dim,
            float scale, bool causal, cudaStream_t stream) {
    const uintptr_t in_bits =
        reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(k) | head_dim * sizeof(__half);
    const uintptr_t out_bits = reinterpret_cast<uintptr_t>(out) | key_len * sizeof(__half);
    constexpr size_t shared_bytes = sizeof(__half) * kStages * kKeys * (D + kVector);
    const long long blocks = heads * ((query_len + kQueries - 1) / kQueries);
    const auto kernel = in_bits % 16 == 0 ? scores_kernel<D, true> : scores_kernel<D, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes, stream>>>(q, k, out, query_len, key_len, head_dim,
                                                                              scale, causal, out_bits % 16 == 0);
}

// q: [batch, heads, query_len, head_dim]   k: [batch, heads, key_len, head_dim]   out: [batch, heads, query_len, key_len]
extern "C" void scores(const __half* q, const __half* k, __half* out, int batch, int heads, int query_len, int key_len,
                       int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || key_len == 0) return;
    const long long all_heads = static_cast<long long>(batch) * heads;
    if (head_dim <= 64) {
        launch<64>(q, k, out, all_heads, query_len, key_len, head_dim, scale, causal, stream);
    } else {
        launch<128>(q, k, out, all_heads, query_len, key_len, head_dim, scale, causal, stream);
    }
}
