// Flash attention on Hopper without warp specialization: each of two warpgroups computes 64 queries of a head, and they
// share tiles of 64 keys. While they process a tile, thread 0 starts the copy of the next one. The course's solution
// describes the parameters.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kQueries = 128, kKeys = 64, kThreads = 256;

template <int DIM>
struct Shared {
    static constexpr int kTile = 2 * 64 * DIM;               // bytes of a tile, as [DIM / 64][64][64]
    static constexpr int kBytes = 1024 + 6 * kTile + 3 * 8;  // two tiles of q; two stages of k and v
};

// Returns the maximum of the four lanes that hold a row if `maximum`, otherwise their sum.
__device__ __forceinline__ float over_row(float x, bool maximum) {
    for (int distance = 1; distance < 4; distance *= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, distance);
        x = maximum ? fmaxf(x, other) : x + other;
    }
    return x;
}

template <typename T, int DIM>
__global__ void __launch_bounds__(kThreads, 1)
    attention_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                     const __grid_constant__ CUtensorMap v_map, const int* query_starts, const int* key_starts, T* out,
                     int heads, int kv_heads, int head_dim, float scale, bool causal) {
    constexpr int kTile = Shared<DIM>::kTile;
    extern __shared__ unsigned char shared[];
    unsigned char* q_tile = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* stages = q_tile + 2 * kTile;  // [2] stages, each with a tile of k, then one of v
    uint64_t* arrived =
        reinterpret_cast<uint64_t*>(stages + 4 * kTile);  // [3] mbarriers: one per stage, then one for q
    const int head = blockIdx.y, first_query = query_starts[blockIdx.z], first_key = key_starts[blockIdx.z];
    const int queries = query_starts[blockIdx.z + 1] - first_query, keys = key_starts[blockIdx.z + 1] - first_key;
    const int query0 = blockIdx.x * kQueries, lane = threadIdx.x % 32, half = threadIdx.x / 128;
    if (query0 >= queries) return;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; ++i) llmk::mbarrier_init(arrived + i, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    const int seen = causal ? max(0, min(keys, min(query0 + kQueries, queries) + keys - queries)) : keys;
    const int row = query0 + threadIdx.x / 32 * 16 + lane / 4;
    float s[kKeys / 2], o[DIM / 2] = {}, maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    auto copy = [&](int key0, int stage) {
        llmk::mbarrier_arrive_expect_tx(arrived + stage, 2 * kTile);
        for (int plane = 0; plane < DIM / 64; ++plane) {
            unsigned char* to = stages + stage * 2 * kTile + plane * 64 * 128;
            llmk::tma_load(to, &k_map, arrived + stage, plane * 64, first_key + key0, head / (heads / kv_heads));
            llmk::tma_load(to + kTile, &v_map, arrived + stage, plane * 64, first_key + key0,
                           head / (heads / kv_heads));
        }
    };
    if (threadIdx.x == 0 && seen > 0) {
        llmk::mbarrier_arrive_expect_tx(arrived + 2, 2 * kTile);
        for (int i = 0; i < 2 * DIM / 64; ++i) {
            llmk::tma_load(q_tile + i * 64 * 128, &q_map, arrived + 2, i % (DIM / 64) * 64,
                           first_query + query0 + i / (DIM / 64) * 64, head);
        }
        copy(0, 0);
    }
    for (int key0 = 0; key0 < seen; key0 += kKeys) {
        const int stage = key0 / kKeys % 2;
        unsigned char *k_tile = stages + stage * 2 * kTile, *v_tile = k_tile + kTile;
        if (threadIdx.x == 0 && key0 + kKeys < seen) copy(key0 + kKeys, stage ^ 1);
        llmk::mbarrier_wait_parity(arrived + stage, key0 / kKeys / 2 % 2);
        if (key0 == 0) llmk::mbarrier_wait_parity(arrived + 2, 0);
        if (keys - key0 < kKeys) {  // clear rows of v that belong to the next sequence
            for (int j = (keys - key0) * 128 + threadIdx.x * 4; j < kKeys * 128; j += kThreads * 4) {
                for (int plane = 0; plane < DIM / 64; ++plane) {
                    *reinterpret_cast<unsigned*>(v_tile + plane * 64 * 128 + j) = 0;
                }
            }
            llmk::fence_proxy_async();
            __syncthreads();
        }

        const uint64_t a = llmk::make_smem_desc(q_tile + half * kTile), b = llmk::make_smem_desc(k_tile);
        llmk::wgmma_fence();
#pragma unroll
        for (int d = 0; d < DIM / 16; ++d) {
            const int step = d / 4 * (64 * 128 / 16) + d % 4 * 2;
            llmk::wgmma_ss<T>(s, a + step, b + step, d > 0);
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int end = causal ? min(keys, row + 8 * h + keys - queries + 1) : keys;
            float m = maximum[h];
#pragma unroll
            for (int i = 0; i < kKeys / 4; ++i) {
                float& x = s[i / 2 * 4 + 2 * h + i % 2];
                if (key0 + i / 2 * 8 + lane % 4 * 2 + i % 2 >= end) x = -INFINITY;
                m = fmaxf(m, x);
            }
            m = over_row(m, true);
            const float base = llmk::finite_max_or_zero(m);
            const float correction = llmk::ex2_approx((maximum[h] - base) * scale);
            maximum[h] = m;
            sum[h] *= correction;
#pragma unroll
            for (int i = 0; i < kKeys / 4; ++i) {
                float& x = s[i / 2 * 4 + 2 * h + i % 2];
                x = llmk::ex2_approx((x - base) * scale);
                sum[h] += x;
            }
#pragma unroll
            for (int i = 0; i < DIM / 4; ++i) o[i / 2 * 4 + 2 * h + i % 2] *= correction;
        }
        unsigned p[kKeys / 16][4];
#pragma unroll
        for (int i = 0; i < kKeys / 4; ++i) p[i / 4][i % 4] = llmk::pack_pair<T>(s[2 * i], s[2 * i + 1]);

        const uint64_t values = llmk::make_smem_desc(v_tile, 64 * 128);
        llmk::wgmma_fence();
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {
            llmk::wgmma_rs<T>(o, p[j], values + j * (16 * 128 / 16), true);
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();
        __syncthreads();
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float factor = llmk::reciprocal_or_zero(over_row(sum[h], false));
        const long long token = first_query + row + 8 * h;
#pragma unroll
        for (int g = 0; g < DIM / 8; ++g) {
            const int column = 8 * g + lane % 4 * 2;
            if (row + 8 * h < queries && column < head_dim) {
                *reinterpret_cast<unsigned*>(out + (token * heads + head) * head_dim + column) =
                    llmk::pack_pair<T>(o[4 * g + 2 * h] * factor, o[4 * g + 2 * h + 1] * factor);
            }
        }
    }
}

template <typename T, int DIM>
static void launch(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                   int batch, int queries, int keys, int max_queries, int heads, int kv_heads, int head_dim,
                   long long q_stride, long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    if (keys == 0) k = v = q;  // a tensor map cannot have a size of 0
    const int rows = keys > 0 ? keys : 1;
    CUtensorMap q_map, k_map, v_map;
    if (llmk::make_tensor_map(&q_map, q, head_dim, queries, heads, q_stride, head_dim, 64) != cudaSuccess ||
        llmk::make_tensor_map(&k_map, k, head_dim, rows, kv_heads, kv_stride, head_dim, kKeys) != cudaSuccess ||
        llmk::make_tensor_map(&v_map, v, head_dim, rows, kv_heads, kv_stride, head_dim, kKeys) != cudaSuccess) {
        return;
    }
    constexpr int bytes = Shared<DIM>::kBytes;
    cudaFuncSetAttribute(attention_kernel<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    attention_kernel<T, DIM><<<dim3((max_queries + kQueries - 1) / kQueries, heads, batch), kThreads, bytes, stream>>>(
        q_map, k_map, v_map, query_starts, key_starts, out, heads, kv_heads, head_dim, scale * llmk::kLog2E, causal);
}

template <typename T>
static void attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int*,
                      int batch, int queries, int keys, int max_queries, int heads, int kv_heads, int head_dim,
                      long long q_stride, long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || queries == 0 || max_queries == 0) return;
    const auto launch_for = head_dim <= 64 ? launch<T, 64> : head_dim <= 128 ? launch<T, 128> : launch<T, 256>;
    launch_for(q, k, v, query_starts, key_starts, out, batch, queries, keys, max_queries, heads, kv_heads, head_dim,
               q_stride, kv_stride, scale, causal, stream);
}
