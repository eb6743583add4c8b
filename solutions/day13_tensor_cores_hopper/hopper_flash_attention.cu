// Flash attention on Hopper: TMA loads tiles, and two or three warpgroups multiply with wgmma.
//
// A block handles 128 queries of one head (192 for heads of 64), each consumer warpgroup 64 of them. One thread of
// warpgroup 0, the producer, only loads: q once, then tiles of k and of v, two of each ahead. For each tile of keys a
// consumer
//   - starts S = q k^T for this tile and O += P v for the previous one, so that the tensor cores have work for both,
//   - lets the next warpgroup start its wgmma, for small heads (ping-pong scheduling): one multiplies while another
//     exponentiates,
//   - runs the online softmax of S in registers: a row lies in four neighboring lanes,
//   - waits for O and rescales it. P stays in registers: the accumulators of S have the layout of operand A of P v.
// Blocks are persistent: when one is done, it takes the next tile of queries. Under a causal mask, tiles with many keys
// come first, and heads whose keys fit the L2 cache come together. Without a mask they come head by head: then many
// blocks request the same k and v at about the same time, and one read from L2 serves several requests. Finding the
// rows of a piece of work takes divisions and loads, so the producer does it, one tile of queries ahead.
//
// Sequences are concatenated: sequence b has the tokens query_starts[b] to query_starts[b + 1] - 1 of q and out, and
// key_starts[b] to key_starts[b + 1] - 1 of k and v. Causal: the last query sees all keys of its sequence.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
//   The heads of a token are contiguous. From token to token, q has a stride of q_stride elements, k and v of
//   kv_stride, and out of heads * head_dim.
//   taken: [1], a counter of the query tiles that blocks have taken
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kStages = 2;  // tiles of k in shared memory, and as many of v

// A piece of work: one tile of queries. A block handles one piece at a time.
struct Work {
    int head, kv_head, query0;            // query0: first query of the tile, counted in its sequence
    int first_query, queries, first_key;  // of the sequence: first query token, number of queries, first key token
    int keys;                             // keys that some query of the tile sees
    int all_keys;                         // keys of the sequence; -1: no work is left
};

// A tile of R rows lies in planes of 64 columns, [DIM / 64][R][64], as TMA writes its boxes.
template <int DIM>
struct Shape {
    static constexpr int kConsumerWarpgroups = DIM <= 64 ? 3 : 2;  // warpgroups that compute
    static constexpr int kQueries = 64 * kConsumerWarpgroups;      // queries per block
    static constexpr int kThreads = 128 * (1 + kConsumerWarpgroups);
    // Registers per thread of a consumer and of the producer. Their total is what the block is launched with. A
    // warpgroup that requests more than the others have released waits forever.
    static constexpr int kRegisters = DIM <= 64 ? 160 : 240, kProducerRegisters = DIM <= 64 ? 32 : 24;
    static constexpr bool kPingPong = DIM <= 64;  // larger heads are as fast without ping-pong
    static constexpr int kKeys = DIM <= 128 ? 128 : 80;
    static constexpr bool kSeparateOut = DIM <= 128;  // out has its own tiles; otherwise it overwrites the tiles of q
    static constexpr int kQueryBytes = 2 * kQueries * DIM;
    static constexpr int kTileBytes = 2 * kKeys * DIM;
    static constexpr int kSharedBytes = 1024 + (kSeparateOut ? 2 : 1) * kQueryBytes + 2 * kStages * kTileBytes +
                                        8 * (2 + 4 * kStages + 4) + 2 * sizeof(Work);
};

struct Problem {
    const int *query_starts, *key_starts;  // [batch + 1]
    int batch, heads, kv_heads, head_dim, tile_queries, query_tiles, heads_per_pass;
    bool causal;
    float scale;  // scale of scores, times log2 e

    // Compute the i-th of batch * heads * query_tiles pieces of work: heads_per_pass heads at a time, and within
    // these the last queries first, because they see the most keys. Return false if the tile has no query.
    __device__ bool work(int i, Work& w) const {
        const int all = batch * heads, group = i / (heads_per_pass * query_tiles), first = group * heads_per_pass;
        const int pass_heads = min(heads_per_pass, all - first), within = i - first * query_tiles;
        const int tile = query_tiles - 1 - within / pass_heads, which = first + within % pass_heads;
        const int sequence = which / heads;
        w.head = which % heads;
        w.kv_head = w.head / (heads / kv_heads);
        w.query0 = tile * tile_queries;
        w.first_query = query_starts[sequence];
        w.queries = query_starts[sequence + 1] - w.first_query;
        w.first_key = key_starts[sequence];
        w.all_keys = key_starts[sequence + 1] - w.first_key;
        const int last = min(w.query0 + tile_queries, w.queries) - 1;
        w.keys = causal ? max(0, min(w.all_keys, last + w.all_keys - w.queries + 1)) : w.all_keys;
        return w.query0 < w.queries;
    }
};

// Return the maximum, or the sum, over the four lanes that hold a row.
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Set masked scores to -inf. `row`: the first of a thread's two rows, in the sequence; `key0`: first key of the tile.
template <int KEYS>
__device__ __forceinline__ void mask(float (&s)[KEYS / 2], const Work& w, bool causal, int row, int key0, int lane) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int end = causal ? min(w.all_keys, row + 8 * h + w.all_keys - w.queries + 1) : w.all_keys;
#pragma unroll
        for (int g = 0; g < KEYS / 8; ++g) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (key0 + 8 * g + lane % 4 * 2 + e >= end) s[4 * g + 2 * h + e] = -INFINITY;
            }
        }
    }
}

// The online softmax of a tile: replace the scores s by weights, update maxima and sums, and return O's factor in
// `correction`.
template <int KEYS>
__device__ __forceinline__ void softmax(float (&s)[KEYS / 2], float (&maximum)[2], float (&sum)[2],
                                        float (&correction)[2], float scale) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float m = maximum[h];
#pragma unroll
        for (int g = 0; g < KEYS / 8; ++g) m = fmaxf(m, fmaxf(s[4 * g + 2 * h], s[4 * g + 2 * h + 1]));
        m = row_max(m);
        const float base = llmk::finite_max_or_zero(m) * scale;
        correction[h] = llmk::ex2_approx(maximum[h] * scale - base);
        maximum[h] = m;
        float total = 0;
#pragma unroll
        for (int g = 0; g < KEYS / 8; ++g) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float& x = s[4 * g + 2 * h + e];
                x = llmk::ex2_approx(x * scale - base);
                total += x;
            }
        }
        sum[h] = sum[h] * correction[h] + total;  // the sum over this lane's columns
    }
}

// Round the weights, and pack the weights of each 16 keys as operand A.
template <typename T, int KEYS>
__device__ __forceinline__ void pack_weights(unsigned (&p)[KEYS / 16][4], const float (&s)[KEYS / 2]) {
#pragma unroll
    for (int k = 0; k < KEYS / 16; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) p[k][j] = llmk::pack_pair<T>(s[8 * k + 2 * j], s[8 * k + 2 * j + 1]);
    }
}

template <typename T, int DIM>
__global__ void __launch_bounds__(Shape<DIM>::kThreads, 1)
    attention_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                     const __grid_constant__ CUtensorMap v_map, T* out, int* taken,
                     const __grid_constant__ Problem problem) {
    constexpr int kKeys = Shape<DIM>::kKeys, kTileBytes = Shape<DIM>::kTileBytes;
    constexpr int kConsumerWarpgroups = Shape<DIM>::kConsumerWarpgroups, kConsumerThreads = 128 * kConsumerWarpgroups;
    extern __shared__ unsigned char shared[];
    unsigned char* q_tile = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* k_tiles = q_tile + (Shape<DIM>::kSeparateOut ? 2 : 1) * Shape<DIM>::kQueryBytes;
    unsigned char* v_tiles = k_tiles + kStages * kTileBytes;
    uint64_t* q_full = reinterpret_cast<uint64_t*>(v_tiles + kStages * kTileBytes);
    uint64_t* q_empty = q_full + 1;
    uint64_t *k_full = q_empty + 1, *k_empty = k_full + kStages;
    uint64_t *v_full = k_empty + kStages, *v_empty = v_full + kStages;
    uint64_t *item_full = v_empty + kStages, *item_empty = item_full + 2;
    Work* items = reinterpret_cast<Work*>(item_empty + 2);  // [2]: current and next piece of work

    const int warpgroup = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(q_full, 1);
        llmk::mbarrier_init(q_empty, kConsumerWarpgroups);
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(k_full + s, 1);
            llmk::mbarrier_init(v_full + s, 1);
            llmk::mbarrier_init(k_empty + s, kConsumerWarpgroups);
            llmk::mbarrier_init(v_empty + s, kConsumerWarpgroups);
        }
        for (int s = 0; s < 2; ++s) {
            llmk::mbarrier_init(item_full + s, 1);
            llmk::mbarrier_init(item_empty + s, kConsumerThreads);
        }
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    const int all = problem.batch * problem.heads * problem.query_tiles;
    Work w;
    llmk::Ring<2> item;
    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<Shape<DIM>::kProducerRegisters>();
        if (threadIdx.x == 0) {
            llmk::Ring<kStages> ring;
            unsigned q_parity = 0;
            for (int i = blockIdx.x;; i = gridDim.x + atomicAdd(taken, 1)) {
                if (i >= all) {
                    w.all_keys = -1;
                } else if (!problem.work(i, w)) {
                    continue;
                }
                llmk::mbarrier_wait_parity(item_empty + item.stage, item.parity ^ 1);
                items[item.stage] = w;
                llmk::mbarrier_arrive(item_full + item.stage);
                item.next();
                if (i >= all) break;
                if (w.keys == 0) continue;
                const int tiles = (w.keys + kKeys - 1) / kKeys;
                auto load = [&](unsigned char* to, const CUtensorMap* map, uint64_t* full, uint64_t* empty, int tile) {
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    llmk::mbarrier_arrive_expect_tx(full + ring.stage, kTileBytes);
                    for (int plane = 0; plane < DIM / 64; ++plane) {
                        llmk::tma_load(to + ring.stage * kTileBytes + plane * kKeys * 128, map, full + ring.stage,
                                       plane * 64, w.first_key + tile * kKeys, w.kv_head);
                    }
                };
                llmk::mbarrier_wait_parity(q_empty, q_parity ^ 1);
                q_parity ^= 1;
                llmk::mbarrier_arrive_expect_tx(q_full, Shape<DIM>::kQueryBytes);
                for (int plane = 0; plane < DIM / 64; ++plane) {
                    for (int c = 0; c < kConsumerWarpgroups; ++c) {
                        llmk::tma_load(q_tile + (c * DIM / 64 + plane) * 64 * 128, &q_map, q_full, plane * 64,
                                       w.first_query + w.query0 + c * 64, w.head);
                    }
                }
                for (int tile = tiles - 1; tile >= 0; --tile, ring.next()) {  // backward: masked tiles come first
                    load(k_tiles, &k_map, k_full, k_empty, tile);
                    load(v_tiles, &v_map, v_full, v_empty, tile);
                }
            }
        }
    } else {
        llmk::setmaxnreg_inc<Shape<DIM>::kRegisters>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, lane = thread % 32;
        unsigned char* own_q = q_tile + consumer * 64 * DIM * 2;  // [DIM / 64][64][64]
        unsigned char* own_out = own_q + (Shape<DIM>::kSeparateOut ? Shape<DIM>::kQueryBytes : 0);
        const uint64_t q_operand = llmk::make_smem_desc(own_q);
        llmk::Ring<kStages> ring;
        unsigned q_parity = 0;
        float s[kKeys / 2], o[DIM / 2];
        unsigned p[kKeys / 16][4];

        auto start_scores = [&](int stage) {  // S = q k^T
            const uint64_t b = llmk::make_smem_desc(k_tiles + stage * kTileBytes);
            llmk::wgmma_fence();
#pragma unroll
            for (int d = 0; d < DIM / 16; ++d) {
                llmk::wgmma_ss<T>(s, q_operand + d / 4 * (64 * 128 / 16) + d % 4 * 2,
                                  b + d / 4 * (kKeys * 128 / 16) + d % 4 * 2, d > 0);
            }
            llmk::wgmma_commit_group();
        };
        auto start_values = [&](int stage, bool add) {  // O (+)= P v
            const uint64_t b = llmk::make_smem_desc(v_tiles + stage * kTileBytes, kKeys * 128);
            llmk::wgmma_fence();
#pragma unroll
            for (int k = 0; k < kKeys / 16; ++k) {
                llmk::wgmma_rs<T>(o, p[k], b + k * (16 * 128 / 16), add || k > 0);
            }
            llmk::wgmma_commit_group();
        };

        // Ping-pong: consumer c waits at barrier 1 + c until the previous consumer has started its wgmma.
        const int turn = 1 + consumer, next_turn = 1 + (consumer + 1) % kConsumerWarpgroups, own = 4 + consumer,
                  all_consumers = 7;
        auto await_turn = [&] {
            if (Shape<DIM>::kPingPong) llmk::bar_sync(turn, 256);
        };
        auto pass_turn = [&] {
            if (Shape<DIM>::kPingPong) llmk::bar_arrive(next_turn, 256);
        };
        if (next_turn == 1) pass_turn();  // the first consumer does not wait for its first turn
        while (true) {
            llmk::mbarrier_wait_parity(item_full + item.stage, item.parity);
            w = items[item.stage];
            if (w.all_keys < 0) break;
            const int tiles = (w.keys + kKeys - 1) / kKeys;
            const int row = w.query0 + consumer * 64 + thread / 32 * 16 + lane / 4;  // the thread also holds row + 8
            float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, correction[2];
            if (tiles > 0) {
                // The first key that at least one row of this warpgroup must not see.
                const int visible = problem.causal ? w.query0 + consumer * 64 + w.all_keys - w.queries + 1 : w.all_keys;
                llmk::mbarrier_wait_parity(q_full, q_parity);
                q_parity ^= 1;
                // Clear the rows of the last tile of v that belong to the next sequence: their weights are 0, but 0
                // times NaN is NaN.
                const int there = w.all_keys - (tiles - 1) * kKeys;
                if (there < kKeys) {
                    llmk::mbarrier_wait_parity(v_full + ring.stage, ring.parity);
                    for (int j = there * 8 + threadIdx.x - 128; j < kKeys * 8; j += kConsumerThreads) {
                        for (int plane = 0; plane < DIM / 64; ++plane) {
                            unsigned char* tile = v_tiles + ring.stage * kTileBytes + plane * kKeys * 128;
                            *reinterpret_cast<uint4*>(tile + j * 16) = make_uint4(0, 0, 0, 0);
                        }
                    }
                    llmk::fence_proxy_async();
                    llmk::bar_sync(all_consumers, kConsumerThreads);
                }
                llmk::mbarrier_wait_parity(k_full + ring.stage, ring.parity);
                await_turn();
                start_scores(ring.stage);
                pass_turn();
                llmk::wgmma_wait_group<0>();
                if (thread == 0) llmk::mbarrier_arrive(k_empty + ring.stage);
                int tile = tiles - 1;
                mask<kKeys>(s, w, problem.causal, row, tile * kKeys, lane);
                softmax<kKeys>(s, maximum, sum, correction, problem.scale);
                pack_weights<T, kKeys>(p, s);
                bool add = false;
                while (--tile >= 0) {
                    const int before = ring.stage;
                    const unsigned before_parity = ring.parity;
                    ring.next();
                    llmk::mbarrier_wait_parity(k_full + ring.stage, ring.parity);
                    await_turn();
                    start_scores(ring.stage);
                    llmk::mbarrier_wait_parity(v_full + before, before_parity);
                    start_values(before, add);
                    pass_turn();
                    llmk::wgmma_wait_group<1>();
                    if (thread == 0) llmk::mbarrier_arrive(k_empty + ring.stage);
                    if ((tile + 1) * kKeys > min(visible, w.all_keys)) {
                        mask<kKeys>(s, w, problem.causal, row, tile * kKeys, lane);
                    }
                    softmax<kKeys>(s, maximum, sum, correction, problem.scale);
                    llmk::wgmma_wait_group<0>();
                    if (thread == 0) llmk::mbarrier_arrive(v_empty + before);
#pragma unroll
                    for (int e = 0; e < DIM / 2; ++e) o[e] *= correction[e / 2 % 2];
                    pack_weights<T, kKeys>(p, s);
                    add = true;
                }
                if (Shape<DIM>::kSeparateOut && thread == 0) llmk::mbarrier_arrive(q_empty);
                llmk::mbarrier_wait_parity(v_full + ring.stage, ring.parity);
                start_values(ring.stage, add);
                llmk::wgmma_wait_group<0>();
                if (thread == 0) llmk::mbarrier_arrive(v_empty + ring.stage);
                ring.next();
            }

            w = items[item.stage];  // load it again, so that it occupies no registers during the loop
            llmk::mbarrier_arrive(item_empty + item.stage);
            item.next();
            // Store through shared memory, so that whole rows are written.
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float factor = llmk::reciprocal_or_zero(row_sum(sum[h]));
#pragma unroll
                for (int g = 0; g < DIM / 8; ++g) {
                    o[4 * g + 2 * h] = tiles > 0 ? o[4 * g + 2 * h] * factor : 0.0f;
                    o[4 * g + 2 * h + 1] = tiles > 0 ? o[4 * g + 2 * h + 1] * factor : 0.0f;
                }
            }
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c) {
                const float* x = o + 8 * c;
                const unsigned values[4] = {llmk::pack_pair<T>(x[0], x[1]), llmk::pack_pair<T>(x[2], x[3]),
                                            llmk::pack_pair<T>(x[4], x[5]), llmk::pack_pair<T>(x[6], x[7])};
                const int r = thread / 32 * 16 + lane % 16, piece = c % 4 * 2 + lane / 16;
                llmk::stmatrix_x4(values, own_out + (c / 4 * 64 + r) * 128 + ((piece ^ (r % 8)) * 16));
            }
            llmk::bar_sync(own, 128);
            constexpr int kPieces = DIM / 8;  // 16-byte pieces per row
#pragma unroll
            for (int j = thread; j < 64 * kPieces; j += 128) {
                const int r = j / kPieces, piece = j % kPieces, query = w.query0 + consumer * 64 + r;
                if (8 * piece >= problem.head_dim) continue;
                if (query >= w.queries) break;
                const uint4 value = *reinterpret_cast<const uint4*>(own_out + (piece / 8 * 64 + r) * 128 +
                                                                    ((piece % 8 ^ (r % 8)) * 16));
                const long long token = w.first_query + query;
                *reinterpret_cast<uint4*>(out + (token * problem.heads + w.head) * problem.head_dim + piece * 8) =
                    value;
            }
            llmk::fence_proxy_async();  // because TMA writes the next queries to these tiles
            llmk::bar_sync(own, 128);
            if (!Shape<DIM>::kSeparateOut && thread == 0 && tiles > 0) llmk::mbarrier_arrive(q_empty);
        }
        if (consumer == 0) await_turn();  // wait once more, for the last consumer's last arrival
    }
}

template <typename T, int DIM>
static void launch(const T* q, const T* k, const T* v, T* out, int* taken, Problem problem, int queries, int keys,
                   int max_queries, long long q_stride, long long kv_stride, cudaStream_t stream) {
    const int dim = problem.head_dim, box = Shape<DIM>::kKeys;
    CUtensorMap q_map, k_map, v_map;
    if (llmk::make_tensor_map(&q_map, q, dim, queries, problem.heads, q_stride, dim, 64) != cudaSuccess ||
        llmk::make_tensor_map(&k_map, k, dim, std::max(keys, 1), problem.kv_heads, kv_stride, dim, box) !=
            cudaSuccess ||
        llmk::make_tensor_map(&v_map, v, dim, std::max(keys, 1), problem.kv_heads, kv_stride, dim, box) !=
            cudaSuccess) {
        return;
    }
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    problem.tile_queries = Shape<DIM>::kQueries;
    problem.query_tiles = (max_queries + problem.tile_queries - 1) / problem.tile_queries;
    const long long items = static_cast<long long>(problem.batch) * problem.heads * problem.query_tiles;
    long long blocks = std::min<long long>(items, sms);
    if (!problem.causal && queries == static_cast<long long>(problem.batch) * max_queries) {
        const long long rounds = (items + blocks - 1) / blocks;  // rounds of work, all of equal length
        blocks = (items + rounds - 1) / rounds;                  // the fewest blocks that take this number of rounds
    }
    cudaMemsetAsync(taken, 0, sizeof(int), stream);
    cudaFuncSetAttribute(attention_kernel<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         Shape<DIM>::kSharedBytes);
    attention_kernel<T, DIM><<<static_cast<unsigned>(blocks), Shape<DIM>::kThreads, Shape<DIM>::kSharedBytes, stream>>>(
        q_map, k_map, v_map, out, taken, problem);
}

template <typename T>
static void attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                      int* taken, int batch, int queries, int keys, int max_queries, int heads, int kv_heads,
                      int head_dim, long long q_stride, long long kv_stride, float scale, bool causal,
                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || queries == 0) return;
    if (keys == 0) k = v = q;  // a tensor map cannot have 0 rows; nothing is loaded from it
    // Under a causal mask, process the heads in passes. A pass has whole groups of heads: as many groups as fit in
    // half of the L2 cache with their k and v.
    const long long head_bytes = 4LL * head_dim * (keys / batch + 1), group = heads / kv_heads;
    const long long pass_heads = causal ? std::max(group, (24LL << 20) / head_bytes * group) : group;
    Problem problem;
    problem.query_starts = query_starts;
    problem.key_starts = key_starts;
    problem.batch = batch;
    problem.heads = heads;
    problem.kv_heads = kv_heads;
    problem.head_dim = head_dim;
    problem.heads_per_pass = static_cast<int>(std::min(pass_heads, static_cast<long long>(batch) * heads));
    problem.causal = causal;
    problem.scale = scale * llmk::kLog2E;
    const auto launch_for = head_dim <= 64 ? launch<T, 64> : head_dim <= 128 ? launch<T, 128> : launch<T, 256>;
    launch_for(q, k, v, out, taken, problem, queries, keys, max_queries, q_stride, kv_stride, stream);
}

extern "C" void hopper_flash_attention_f16(const __half* q, const __half* k, const __half* v, const int* query_starts,
                                           const int* key_starts, __half* out, int* taken, int batch, int queries,
                                           int keys, int max_queries, int heads, int kv_heads, int head_dim,
                                           long long q_stride, long long kv_stride, float scale, bool causal,
                                           cudaStream_t stream) {
    attention(q, k, v, query_starts, key_starts, out, taken, batch, queries, keys, max_queries, heads, kv_heads,
              head_dim, q_stride, kv_stride, scale, causal, stream);
}

extern "C" void hopper_flash_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                            const int* query_starts, const int* key_starts, __nv_bfloat16* out,
                                            int* taken, int batch, int queries, int keys, int max_queries, int heads,
                                            int kv_heads, int head_dim, long long q_stride, long long kv_stride,
                                            float scale, bool causal, cudaStream_t stream) {
    attention(q, k, v, query_starts, key_starts, out, taken, batch, queries, keys, max_queries, heads, kv_heads,
              head_dim, q_stride, kv_stride, scale, causal, stream);
}
