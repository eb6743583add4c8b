// Flash attention, forward, f32: out = softmax(scale * q k^T) v, and no score is ever stored in global memory.
//
//   q, out: [batch, heads, query_len, head_dim]      k, v: [batch, heads, key_len, head_dim]
//
// One block owns 64 or 128 queries. It walks over the keys in tiles, and keeps per query the largest score so far (m),
// the sum of exp(score - m) so far (l) and the weighted sum of values so far (o). When a tile has a larger score, l and
// o are scaled by exp(old m - new m).
//
// Both matmuls, S = Q K^T and O += P V, use register tiles: a thread owns 8 queries x 4 or 8 keys of S
// and 8 queries x 4 to 12 columns of O, so it uses each value that it reads from shared memory 4 to 12 times.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"

constexpr int kThreads = 128;
constexpr int kRows = 8;  // queries per thread

// Sizes for DIM, the number of columns kept: head_dim rounded up to 32, 64, 96 or 128, and filled up with
// zeros. Two blocks fit on a streaming multiprocessor (SM): each has at most 256 registers a thread and 113 KB of
// shared memory.
template <int DIM>
struct Shape {
    static constexpr int kLanes = DIM > 96 ? 16 : 8;            // lanes of a warp that share their queries
    static constexpr int kQueries = kThreads / kLanes * kRows;  // queries per block
    static constexpr int kKeys = DIM == 96 ? 32 : 64;           // keys per tile
    static constexpr int kKeysEach = kKeys / kLanes;            // keys per thread
    static constexpr int kColumnsEach = DIM / kLanes;           // output columns per thread
    static constexpr int kChunks = DIM / 4;                     // float4s of a row of q, k or v
    static constexpr int kKeyPitch = kChunks + 1;               // float4s from one row of k to the next
    static constexpr size_t kSharedBytes =
        sizeof(float4) * (kQueries * kChunks + kKeys * kKeyPitch + kKeys * kChunks + kQueries * kKeys / 4);
};

// Shared memory has 32 banks, and rows of 32, 64 or 128 floats put the same column of every row into the same banks.
// The lanes that read together read one column of 8 different keys, so rows of k are one float4 longer than they need
// to be. The same lanes also read one column of two queries, which belong to neighboring groups of 8 queries. So every
// other group has the two halves of each 8 float4s swapped, and the two queries lie in different banks.
__device__ __forceinline__ int swizzle(int query) { return query / kRows % 2 * 4; }

// Start copying rows of `source` (its first `valid_rows` exist) into a tile, straight from global to shared memory,
// WIDTH floats at a time. Rows and columns that do not exist become zeros, and are not read.
template <int DIM, int ROWS, int PITCH, bool SWIZZLED, int WIDTH>
__device__ void copy_units(float4* tile, const float* source, int valid_rows, int head_dim) {
    constexpr int kUnits = DIM / WIDTH;  // copies per row
#pragma unroll WIDTH
    for (int i = 0; i < ROWS * kUnits; i += kThreads) {
        const int row = (i + threadIdx.x) / kUnits, column = (i + threadIdx.x) % kUnits * WIDTH;
        float4* chunk = &tile[row * PITCH + (column / 4 ^ (SWIZZLED ? swizzle(row) : 0))];
        const float* from = source + static_cast<size_t>(row) * head_dim + column;
        const size_t missing = row < valid_rows && column < head_dim ? 0 : WIDTH * sizeof(float);
        __pipeline_memcpy_async(reinterpret_cast<float*>(chunk) + column % 4, from, WIDTH * sizeof(float), missing);
    }
}

// Start copying rows to a tile. `vectors`: every row of `source` starts at a multiple of 16 bytes.
template <int DIM, int ROWS, int PITCH, bool SWIZZLED>
__device__ void copy_tile(float4* tile, const float* source, int valid_rows, int head_dim, bool vectors) {
    if (vectors) {
        copy_units<DIM, ROWS, PITCH, SWIZZLED, 4>(tile, source, valid_rows, head_dim);
    } else {
        copy_units<DIM, ROWS, PITCH, SWIZZLED, 1>(tile, source, valid_rows, head_dim);
    }
    __pipeline_commit();
}

template <int DIM>
__global__ void __launch_bounds__(kThreads, 2)
    attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
           float* __restrict__ out, int query_len, int key_len, int head_dim, float scale, bool causal, bool vectors) {
    using S = Shape<DIM>;
    extern __shared__ float4 shared[];
    float4* q_tile = shared;                             // [kQueries][DIM], swizzled
    float4* k_tile = q_tile + S::kQueries * S::kChunks;  // [kKeys][DIM + 4]
    float4* v_tile = k_tile + S::kKeys * S::kKeyPitch;   // [kKeys][DIM]
    float4* p_tile = v_tile + S::kKeys * S::kChunks;     // [kQueries][kKeys], swizzled

    // The lanes of a warp form groups of 8 or 16; a group shares 8 queries. Lane bit 1 is the lowest bit of the group's
    // number, and lane bit 0 is the lowest bit of the place in the group. So four neighboring lanes have two groups,
    // which determine the query, and two places, which determine the key: each query and each key is read by two of the
    // lanes. The hardware serves such 16-byte reads in half the wavefronts.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tx = (lane & 1) | (lane >> 1 & (S::kLanes - 2));
    const int ty = warp * (32 / S::kLanes) + ((lane >> 1 & 1) | (S::kLanes == 8 ? lane >> 3 & 2 : 0));

    // The block's queries and head. Under a causal mask the last queries see the most keys, so they start first.
    const int tiles = (query_len + S::kQueries - 1) / S::kQueries;
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * S::kQueries;
    const size_t head = blockIdx.x / tiles;
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += head * key_len * head_dim;
    v += head * key_len * head_dim;

    // Query i sees keys 0 ... i + offset. No query of the block sees key_end or later.
    const long long offset = static_cast<long long>(key_len) - query_len;
    const int rows = min(S::kQueries, query_len - first_query);
    const int key_end = causal ? static_cast<int>(max(0LL, first_query + rows + offset)) : key_len;

    float o[kRows][S::kColumnsEach] = {};
    float m[kRows], l[kRows];
    for (int i = 0; i < kRows; ++i) {
        m[i] = -INFINITY;
        l[i] = 0;
    }

    copy_tile<DIM, S::kQueries, S::kChunks, true>(q_tile, q, rows, head_dim, vectors);
    copy_tile<DIM, S::kKeys, S::kKeyPitch, false>(k_tile, k, key_end, head_dim, vectors);
    llmk::cp_async_wait_all_and_sync();
    const float log2_scale = scale * llmk::kLog2E;  // exp(scale * q k) = exp2((log2_scale * q) k)
    for (int i = threadIdx.x; i < S::kQueries * S::kChunks; i += kThreads) {
        const float4 x = q_tile[i];
        q_tile[i] = make_float4(x.x * log2_scale, x.y * log2_scale, x.z * log2_scale, x.w * log2_scale);
    }

    for (int first_key = 0; first_key < key_end; first_key += S::kKeys) {
        llmk::cp_async_wait_all_and_sync();  // this tile of k has arrived, and all threads have used the last tile of v
        const size_t key_offset = static_cast<size_t>(first_key) * head_dim;
        copy_tile<DIM, S::kKeys, S::kChunks, false>(v_tile, v + key_offset, key_end - first_key, head_dim, vectors);

        // S = Q K^T. Thread (ty, tx) owns queries 8 ty ... 8 ty + 7 and keys tx, tx + kLanes, tx + 2 kLanes, ...
        float s[kRows][S::kKeysEach] = {};
        for (int chunk = 0; chunk < (head_dim + 15) / 16 * 4; chunk += 4) {
            const float4* queries = &q_tile[kRows * ty * S::kChunks + (chunk ^ swizzle(kRows * ty))];
            const float4* keys = &k_tile[tx * S::kKeyPitch + chunk];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                float4 key[S::kKeysEach];
#pragma unroll
                for (int j = 0; j < S::kKeysEach; ++j) key[j] = keys[j * S::kLanes * S::kKeyPitch + c];
#pragma unroll
                for (int i = 0; i < kRows; ++i) {
                    const float4 query = queries[i * S::kChunks + c];
#pragma unroll
                    for (int j = 0; j < S::kKeysEach; ++j) s[i][j] += query.x * key[j].x;
#pragma unroll
                    for (int j = 0; j < S::kKeysEach; ++j) s[i][j] += query.y * key[j].y;
#pragma unroll
                    for (int j = 0; j < S::kKeysEach; ++j) s[i][j] += query.z * key[j].z;
#pragma unroll
                    for (int j = 0; j < S::kKeysEach; ++j) s[i][j] += query.w * key[j].w;
                }
            }
        }

        // Exclude keys that the mask hides, and keys past the last one. Most tiles have no such keys.
        if (first_key + S::kKeys > (causal ? first_query + offset + 1 : key_len)) {
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                const long long seen = causal ? first_query + kRows * ty + i + offset + 1 : key_len;
#pragma unroll
                for (int j = 0; j < S::kKeysEach; ++j) {
                    const int key = first_key + tx + j * S::kLanes;
                    if (key >= seen || key >= key_end) s[i][j] = -INFINITY;
                }
            }
        }

        // The online softmax: new maximum, correction of the sums so far, P = exp2(S - m). Chunk tx of a row of P holds
        // the weights of the thread's keys tx, tx + kLanes, tx + 2 kLanes and tx + 3 kLanes; chunk tx + kLanes holds
        // those of its next four keys.
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            float new_m = m[i];
#pragma unroll
            for (int j = 0; j < S::kKeysEach; ++j) new_m = fmaxf(new_m, s[i][j]);
            new_m = fmaxf(new_m, __shfl_xor_sync(llmk::kAllLanes, new_m, 1));
#pragma unroll
            for (int bit = 4; bit < 2 * S::kLanes; bit *= 2) {
                new_m = fmaxf(new_m, __shfl_xor_sync(llmk::kAllLanes, new_m, bit));
            }
            const float base = llmk::finite_max_or_zero(new_m);
            const float correction = exp2f(m[i] - base);
            m[i] = new_m;
            l[i] *= correction;
#pragma unroll
            for (int d = 0; d < S::kColumnsEach; ++d) o[i][d] *= correction;
#pragma unroll
            for (int j = 0; j < S::kKeysEach; ++j) {
                s[i][j] = exp2f(s[i][j] - base);
                l[i] += s[i][j];  // sum over this thread's keys; the lanes' sums are added at the end
            }
#pragma unroll
            for (int j = 0; j < S::kKeysEach; j += 4) {
                const int row = kRows * ty + i, chunk = tx + j / 4 * S::kLanes;
                p_tile[row * (S::kKeys / 4) + (chunk ^ swizzle(row))] =
                    make_float4(s[i][j], s[i][j + 1], s[i][j + 2], s[i][j + 3]);
            }
        }

        llmk::cp_async_wait_all_and_sync();  // v and P are complete, and all threads have used this tile of k
        if (first_key + S::kKeys < key_end) {
            copy_tile<DIM, S::kKeys, S::kKeyPitch, false>(k_tile,
                                                          k + key_offset + static_cast<size_t>(S::kKeys) * head_dim,
                                                          key_end - first_key - S::kKeys, head_dim, vectors);
        }

        // O += P V. Thread (ty, tx) owns columns 4 tx ... 4 tx + 3 of each 32.
#pragma unroll 2
        for (int chunk = 0; chunk < S::kKeys / 4; ++chunk) {
            const float4* weights = &p_tile[kRows * ty * (S::kKeys / 4) + (chunk ^ swizzle(kRows * ty))];
            const float4* values = &v_tile[(chunk % S::kLanes + chunk / S::kLanes * 4 * S::kLanes) * S::kChunks + tx];
            float4 p[kRows];
#pragma unroll
            for (int i = 0; i < kRows; ++i) p[i] = weights[i * (S::kKeys / 4)];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int d = 0; d < S::kColumnsEach; d += 4) {
                    const float4 value = values[j * S::kLanes * S::kChunks + d / 4 * S::kLanes];
#pragma unroll
                    for (int i = 0; i < kRows; ++i) {
                        const float weight = j == 0 ? p[i].x : j == 1 ? p[i].y : j == 2 ? p[i].z : p[i].w;
                        o[i][d] += weight * value.x;
                        o[i][d + 1] += weight * value.y;
                        o[i][d + 2] += weight * value.z;
                        o[i][d + 3] += weight * value.w;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        float sum = l[i];
        sum += __shfl_xor_sync(llmk::kAllLanes, sum, 1);
#pragma unroll
        for (int bit = 4; bit < 2 * S::kLanes; bit *= 2) sum += __shfl_xor_sync(llmk::kAllLanes, sum, bit);
        const float inverse = llmk::reciprocal_or_zero(sum);
        const int row = kRows * ty + i;
#pragma unroll
        for (int d = 0; d < S::kColumnsEach; ++d) {
            const int column = d / 4 * 4 * S::kLanes + 4 * tx + d % 4;
            if (row < rows && column < head_dim) out[static_cast<size_t>(row) * head_dim + column] = o[i][d] * inverse;
        }
    }
}

template <int DIM>
void launch(const float* q, const float* k, const float* v, float* out, int batch, int heads, int query_len,
            int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    using S = Shape<DIM>;
    const int tiles = (query_len + S::kQueries - 1) / S::kQueries;
    const bool vectors = llmk::rows_are_aligned(head_dim, q, k, v);
    cudaFuncSetAttribute(attend<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
    attend<DIM><<<batch * heads * tiles, kThreads, S::kSharedBytes, stream>>>(q, k, v, out, query_len, key_len,
                                                                              head_dim, scale, causal, vectors);
}

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const auto launch_for = head_dim <= 32   ? launch<32>
                            : head_dim <= 64 ? launch<64>
                            : head_dim <= 96 ? launch<96>
                                             : launch<128>;
    launch_for(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}
