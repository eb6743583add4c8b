// Flash attention, forward, f32: groups of 8 lanes own queries, tiles of keys pass through shared memory.
//
//   q, out: [batch, heads, query_len, DIM]      k, v: [batch, heads, key_len, DIM]      DIM: 32 or 64
//
// Global memory: k and v are fetched once for every kQueries queries, so a large kQueries means little traffic. kKeys
// does not affect it, and is small enough to keep the block within 48 KB of shared memory. Shared memory: each
// key and each value that a lane reads feeds the kEach queries that it owns.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"

constexpr int kQueries = 128;  // queries per block
constexpr int kKeys = 16;      // keys per tile
constexpr int kEach = 4;       // queries per group of kLanes lanes
constexpr int kLanes = 8;  // lanes that share their queries: each computes some of the scores and some of the columns
constexpr int kThreads = kQueries / kEach * kLanes;

// Copy up to ROWS rows into a tile with all threads of the block. Rows past the end become zero.
template <int ROWS, int DIM>
__device__ void load_tile(float (*tile)[DIM + 1], const float* rows, int count) {
    for (int i = threadIdx.x; i < ROWS * DIM; i += kThreads) tile[i / DIM][i % DIM] = i / DIM < count ? rows[i] : 0.0f;
}

template <int DIM>
__global__ void attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len,
                       float scale, bool causal) {
    // Rows are padded by one float, so that rows that are read together start in different banks.
    __shared__ float q_tile[kQueries][DIM + 1];
    __shared__ float k_tile[kKeys][DIM + 1];
    __shared__ float v_tile[kKeys][DIM + 1];
    float p[kEach][kKeys / kLanes];

    const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
    const int first_query = blockIdx.x * kQueries;
    const int offset = key_len - query_len;  // causal: query i sees keys 0 ... i + offset
    const size_t head = blockIdx.y;
    q += (head * query_len + first_query) * DIM;
    out += (head * query_len + first_query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;
    load_tile<kQueries, DIM>(q_tile, q, query_len - first_query);

    float m[kEach], l[kEach], o[kEach][DIM / kLanes];
    for (int i = 0; i < kEach; ++i) {
        m[i] = -INFINITY;
        l[i] = 0;
        for (int c = 0; c < DIM / kLanes; ++c) o[i][c] = 0;
    }

    const int block_visible = causal ? min(first_query + kQueries, query_len) + offset : key_len;
    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();
        load_tile<kKeys, DIM>(k_tile, k + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        load_tile<kKeys, DIM>(v_tile, v + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        __syncthreads();

        // Scores of keys lane, lane + kLanes, ...: a key is read once for kEach queries.
        for (int j = 0; j < kKeys / kLanes; ++j) {
            float sums[kEach] = {};
            for (int d = 0; d < DIM; ++d) {
                const float key = k_tile[lane + j * kLanes][d];
                for (int i = 0; i < kEach; ++i) sums[i] += q_tile[group * kEach + i][d] * key;
            }
            for (int i = 0; i < kEach; ++i) p[i][j] = sums[i];
        }

        // The online softmax. The lanes of a group agree on the maximum by shuffles.
        for (int i = 0; i < kEach; ++i) {
            const int visible = causal ? first_query + group * kEach + i + offset + 1 : key_len;
            float new_m = m[i];
            for (int j = 0; j < kKeys / kLanes; ++j) {
                const int key = first_key + lane + j * kLanes;
                p[i][j] = key < visible && key < key_len ? p[i][j] * scale : -INFINITY;
                new_m = fmaxf(new_m, p[i][j]);
            }
            new_m = llmk::warp_max<kLanes>(new_m);
            const float base = llmk::finite_max_or_zero(new_m);
            const float correction = expf(m[i] - base);
            m[i] = new_m;
            l[i] *= correction;
            for (int c = 0; c < DIM / kLanes; ++c) o[i][c] *= correction;
            for (int j = 0; j < kKeys / kLanes; ++j) {
                p[i][j] = expf(p[i][j] - base);
                l[i] += p[i][j];  // the sum over this lane's keys; the lanes' sums are added at the end
            }
        }

        // Add to columns lane, lane + kLanes, ... of the output: a value is read once for kEach queries. The weight of
        // key `key` is in the registers of lane key % kLanes.
#pragma unroll
        for (int j = 0; j < kKeys / kLanes; ++j) {
            for (int source = 0; source < kLanes; ++source) {
                float weight[kEach];
                for (int i = 0; i < kEach; ++i) weight[i] = __shfl_sync(0xffffffff, p[i][j], source, kLanes);
                for (int c = 0; c < DIM / kLanes; ++c) {
                    const float value = v_tile[source + j * kLanes][lane + c * kLanes];
                    for (int i = 0; i < kEach; ++i) o[i][c] += weight[i] * value;
                }
            }
        }
    }

    for (int i = 0; i < kEach; ++i) {
        const float sum = llmk::warp_sum<kLanes>(l[i]);
        const int row = group * kEach + i;
        if (first_query + row >= query_len) continue;
        for (int c = 0; c < DIM / kLanes; ++c) out[row * DIM + lane + c * kLanes] = sum > 0 ? o[i][c] / sum : 0.0f;
    }
}

extern "C" void flash_attention_tiles(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                      int query_len, int key_len, int head_dim, float scale, bool causal,
                                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    const auto kernel = head_dim == 32 ? attend<32> : attend<64>;
    kernel<<<grid, kThreads, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}
