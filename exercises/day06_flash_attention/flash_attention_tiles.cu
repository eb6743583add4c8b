// Flash attention, forward, f32: each group of 8 lanes owns a query, tiles of keys pass through shared memory.
//
//   q, out: [batch, heads, query_len, DIM]      k, v: [batch, heads, key_len, DIM]      DIM: 32 or 64
//
// This kernel is correct but wasteful. Global memory: k and v are fetched again for every kQueries queries. Shared
// memory: each value that a lane reads feeds only one multiply-add. A block may have at most 1024 threads and 48 KB of
// static shared memory.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"

constexpr int kQueries = 8;  // queries per block
constexpr int kKeys = 64;    // keys per tile
constexpr int kLanes = 8;    // lanes that share a query: each computes some of the scores and some of the columns
constexpr int kThreads = kQueries * kLanes;

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
    float p[kKeys / kLanes];

    const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
    const int first_query = blockIdx.x * kQueries;
    const int offset = key_len - query_len;  // causal: query i sees keys 0 ... i + offset
    const size_t head = blockIdx.y;
    q += (head * query_len + first_query) * DIM;
    out += (head * query_len + first_query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;
    load_tile<kQueries, DIM>(q_tile, q, query_len - first_query);

    float m = -INFINITY, l = 0, o[DIM / kLanes];
    for (int c = 0; c < DIM / kLanes; ++c) o[c] = 0;

    const int visible = causal ? first_query + group + offset + 1 : key_len;  // this query sees keys 0 ... visible - 1
    const int block_visible = causal ? min(first_query + kQueries, query_len) + offset : key_len;
    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();
        load_tile<kKeys, DIM>(k_tile, k + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        load_tile<kKeys, DIM>(v_tile, v + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        __syncthreads();

        // Scores of keys lane, lane + kLanes, ...
        float new_m = m;
        for (int j = 0; j < kKeys / kLanes; ++j) {
            float sum = 0;
            for (int d = 0; d < DIM; ++d) sum += q_tile[group][d] * k_tile[lane + j * kLanes][d];
            const int key = first_key + lane + j * kLanes;
            p[j] = key < visible && key < key_len ? sum * scale : -INFINITY;
            new_m = fmaxf(new_m, p[j]);
        }

        // The online softmax. The lanes of a group agree on the maximum by shuffles.
        new_m = llmk::warp_max<kLanes>(new_m);
        const float base = llmk::finite_max_or_zero(new_m);
        const float correction = expf(m - base);
        m = new_m;
        l *= correction;
        for (int c = 0; c < DIM / kLanes; ++c) o[c] *= correction;
        for (int j = 0; j < kKeys / kLanes; ++j) {
            p[j] = expf(p[j] - base);
            l += p[j];  // the sum over this lane's keys; the lanes' sums are added at the end
        }

        // Add to columns lane, lane + kLanes, ... of the output. The weight of key `key` is in a register of lane
        // key % kLanes.
#pragma unroll
        for (int j = 0; j < kKeys / kLanes; ++j) {
            for (int source = 0; source < kLanes; ++source) {
                const float weight = __shfl_sync(0xffffffff, p[j], source, kLanes);
                for (int c = 0; c < DIM / kLanes; ++c) o[c] += weight * v_tile[source + j * kLanes][lane + c * kLanes];
            }
        }
    }

    float sum = l;
    for (int bit = 1; bit < kLanes; bit *= 2) sum += __shfl_xor_sync(0xffffffff, sum, bit);
    if (first_query + group >= query_len) return;
    for (int c = 0; c < DIM / kLanes; ++c) out[group * DIM + lane + c * kLanes] = sum > 0 ? o[c] / sum : 0.0f;
}

extern "C" void flash_attention_tiles(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                      int query_len, int key_len, int head_dim, float scale, bool causal,
                                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    const auto kernel = head_dim == 32 ? attend<32> : attend<64>;
    kernel<<<grid, kThreads, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}
