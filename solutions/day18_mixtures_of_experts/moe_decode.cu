// A mixture of experts for 1 to 64 tokens, in two kernels. Each chosen expert's weights are read once, by whichever warp
// has their tile, for all tokens that chose it, so the time is that of reading these weights.
//
//   x, out: [tokens, hidden]     ids, weights: [tokens, top_k]     gate_up: [experts, 2 inter, hidden], gate above up
//   down: [experts, hidden, inter]     middle: [tokens * top_k, inter], the workspace
//
// A *pair* is a token with one of its experts. The first kernel computes silu(gate) * up of every pair, a tile of 16
// features of an expert at a time. In the second a tile is 16 features of out: it goes through all chosen experts,
// so their weighted results are added up in shared memory, without atomics and in the same order in every run.
//
// A team of `parts` warps computes a tile: each warp sums over a part of k. In each mma.sync the weights are operand A,
// with 16 features as rows, and eight pairs are the columns of operand B. A lane loads its weights straight into
// registers: 128 neighboring bytes of each of 16 rows per chunk, one chunk ahead of the one that it multiplies. DRAM
// delivers long pieces of few rows faster than short pieces of many. The rows of the pairs arrive in shared memory by
// cp.async at the same time, because waiting for them would take longer than for the weights, which are ahead.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/decode.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"

constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kMostExperts = 1024, kMostPairs = 1024;
constexpr int kTile = 16;       // features of a tile
constexpr int kPairTile = 8;    // pairs that an mma.sync multiplies
constexpr int kSlotPairs = 32;  // the maximum number of pairs of a slot
constexpr int kStep = 32;       // columns that a lane's 16 bytes of each row make up
constexpr int kSteps = 2;       // steps per chunk
constexpr int kChunk = kSteps * kStep;
constexpr int kTileSums = kTile * kPairTile;  // floats: [feature][pair], or [token][feature]

// What depends on kPairTiles, the maximum number of tiles of 8 pairs in a slot: 1 for up to 8 tokens, otherwise 4. Eight
// tokens per tile also suffice for the second kernel's table of up to 64 tokens.
template <int kPairTiles>
struct Sizes {
    static constexpr int kSums = 2 * kPairTiles * kTileSums;  // floats per warp
    static constexpr int kQueue = 2 * kPairTiles * kSteps;    // 16-byte entries per lane: two chunks
    static constexpr int kBytes = kWarps * kSums * 4 + kQueue * kThreads * 16;
};

// The pairs, sorted by expert. A *slot* is up to kSlotPairs pairs of an expert.
struct Routing {
    int expert[kMostPairs];     // the expert of each slot
    int first[kMostPairs + 1];  // the first pair of each slot, in `pairs`
    int pairs[kMostPairs];
    int next[kMostExperts];  // per expert: its number of pairs, later the place of its next pair
    int slots;

    __device__ void build(const int* ids, int count, int experts) {
        for (int e = threadIdx.x; e < experts; e += kThreads) next[e] = 0;
        __syncthreads();
        for (int p = threadIdx.x; p < count; p += kThreads) atomicAdd(next + ids[p], 1);
        __syncthreads();
        if (threadIdx.x < 32) {
            const int lane = threadIdx.x;
            int pairs_before = 0, slots_before = 0;
            for (int some = 0; some < experts; some += 32) {
                const int own = some + lane < experts ? next[some + lane] : 0;
                const int own_slots = (own + kSlotPairs - 1) / kSlotPairs;
                int pairs_to_here = own, slots_to_here = own_slots;
#pragma unroll
                for (int distance = 1; distance < 32; distance *= 2) {
                    const int more_pairs = __shfl_up_sync(llmk::kAllLanes, pairs_to_here, distance);
                    const int more_slots = __shfl_up_sync(llmk::kAllLanes, slots_to_here, distance);
                    if (lane >= distance) pairs_to_here += more_pairs;
                    if (lane >= distance) slots_to_here += more_slots;
                }
                const int first_pair = pairs_before + pairs_to_here - own;
                if (own > 0) next[some + lane] = first_pair;
                for (int s = 0; s < own_slots; ++s) {
                    const int slot = slots_before + slots_to_here - own_slots + s;
                    expert[slot] = some + lane;
                    first[slot] = first_pair + s * kSlotPairs;
                }
                pairs_before += __shfl_sync(llmk::kAllLanes, pairs_to_here, 31);
                slots_before += __shfl_sync(llmk::kAllLanes, slots_to_here, 31);
            }
            if (lane == 0) {
                first[slots_before] = pairs_before;
                slots = slots_before;
            }
        }
        __syncthreads();
        // The order of an expert's pairs may differ from run to run; a pair's result does not depend on it.
        for (int p = threadIdx.x; p < count; p += kThreads) pairs[atomicAdd(next + ids[p], 1)] = p;
        __syncthreads();
    }
    __device__ int count(int slot) const { return first[slot + 1] - first[slot]; }
};

// The division of warps into teams of `parts` warps. The constructor chooses the number that finishes first.
struct Teams {
    int parts, team, part, teams;

    __device__ Teams(int tiles, int steps) : parts(1) {
        const int warps = static_cast<int>(gridDim.x) * kWarps, warp = threadIdx.x / 32;
        long long best = -1;
        for (int p = 1; p <= kWarps; p *= 2) {
            const long long rounds = (tiles + warps / p - 1) / (warps / p), time = rounds * ((steps + p - 1) / p);
            if (best >= 0 && time >= best) continue;
            best = time;
            parts = p;
        }
        part = warp % parts;
        team = static_cast<int>(blockIdx.x) * (kWarps / parts) + warp / parts;  // neighbors read the same rows of x
        teams = warps / parts;
    }
    __device__ void sync() const {
        if (parts == 1) {
            __syncwarp();
        } else if (parts == kWarps) {
            __syncthreads();
        } else {
            llmk::bar_sync(1 + threadIdx.x / 32 / parts, 32 * parts);
        }
    }
};

// The rows of operand B that a lane loads: pair i of each 8 pairs of a slot; -1 for no pair.
template <int kPairTiles>
struct Rows {
    int tiles;  // tiles of 8 pairs
    int row[kPairTiles];

    // pairs_per_row: the number of neighboring pairs that share a row
    __device__ Rows(const Routing& routing, int slot, int i, int pairs_per_row) {
        const int first = routing.first[slot], count = routing.count(slot);
        tiles = (count + kPairTile - 1) / kPairTile;
#pragma unroll
        for (int n = 0; n < kPairTiles; ++n) {
            row[n] = kPairTile * n + i < count ? routing.pairs[first + kPairTile * n + i] / pairs_per_row : -1;
        }
    }
};

// 16 rows and kChunk columns of weights: lane (i, t) has columns 8 t ... 8 t + 7 of rows i and i + 8, of each 32 columns.
struct Chunk {
    uint4 low[kSteps], high[kSteps];

    // row: row i of the tile     has_high: whether the tile has rows 8 to 15     column: this lane's first column in
    // this chunk     Rows and columns outside of the matrix become 0.
    template <typename T>
    __device__ __forceinline__ void load(const T* row, bool has_high, int column, int columns) {
        const T* high_row = row + 8LL * columns;
#pragma unroll
        for (int s = 0; s < kSteps; ++s, column += kStep) {
            low[s] = high[s] = make_uint4(0, 0, 0, 0);
            if (column < columns) low[s] = __ldcs(reinterpret_cast<const uint4*>(row + column));
            if (column < columns && has_high) high[s] = __ldcs(reinterpret_cast<const uint4*>(high_row + column));
        }
    }
};

// A lane's columns of the pairs' rows, for the present chunk and the next one.
template <int kPairTiles>
struct PairQueue {
    uint4* own;  // entry e of this lane is own[e * kThreads]
    int stage = 0;

    __device__ explicit PairQueue(unsigned char* shared)
        : own(reinterpret_cast<uint4*>(shared + kWarps * Sizes<kPairTiles>::kSums * 4) + threadIdx.x) {}

    // left: [.., columns]     column: this lane's first column in the chunk
    template <typename T>
    __device__ __forceinline__ void fetch(const T* left, const Rows<kPairTiles>& rows, int column, int columns,
                                          int to_stage) const {
#pragma unroll
        for (int n = 0; n < kPairTiles; ++n) {
            if (n >= rows.tiles) break;
            const T* row = left + static_cast<long long>(rows.row[n]) * columns;
#pragma unroll
            for (int s = 0; s < kSteps; ++s) {
                const int from = column + s * kStep;
                const bool exists = rows.row[n] >= 0 && from < columns;
                uint4* to = own + ((to_stage * kPairTiles + n) * kSteps + s) * kThreads;
                __pipeline_memcpy_async(to, exists ? row + from : left, 16, exists ? 0 : 16);
            }
        }
    }
    __device__ __forceinline__ uint4 get(int n, int s) const {
        return own[((stage * kPairTiles + n) * kSteps + s) * kThreads];
    }
};

// Multiply a chunk of weights by the pairs' rows, and add the products to `sums`. tiles: the slot's tiles of 8 pairs
template <typename T, int kPairTiles>
__device__ __forceinline__ void multiply(float (&sums)[kPairTiles][4], const Chunk& chunk,
                                         const PairQueue<kPairTiles>& queue, int tiles) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
        const uint4 low = chunk.low[s], high = chunk.high[s];
        const unsigned first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
        for (int n = 0; n < kPairTiles; ++n) {
            if (n >= tiles) break;
            const uint4 b = queue.get(n, s);
            llmk::mma_m16n8k16<T>(sums[n], first, b.x, b.y);
            llmk::mma_m16n8k16<T>(sums[n], second, b.z, b.w);
        }
    }
}

// Store the accumulators of 16 features and up to 8 kPairTiles pairs, [feature][pair] for each 8 pairs.
template <int kPairTiles>
__device__ __forceinline__ void store_sums(float* to, const float (&sums)[kPairTiles][4], int tiles) {
    float2* pairs = reinterpret_cast<float2*>(to) + threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < kPairTiles; ++n) {
        if (n >= tiles) break;
        pairs[n * kTileSums / 2] = make_float2(sums[n][0], sums[n][1]);
        pairs[n * kTileSums / 2 + 32] = make_float2(sums[n][2], sums[n][3]);
    }
}

// middle = silu(x gate^T) * (x up^T), for every pair.
template <int kPairTiles, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    gate_up_kernel(const T* __restrict__ x, const int* __restrict__ ids, const T* __restrict__ gate_up,
                   T* __restrict__ middle, int tokens, int experts, int top_k, int hidden, int inter) {
    constexpr int kSums = Sizes<kPairTiles>::kSums;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Routing routing;
    llmk::griddepcontrol_launch_dependents();
    routing.build(ids, tokens * top_k, experts);

    float* all_sums = reinterpret_cast<float*>(shared);  // [kWarps][gate, up][kSums / 2]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int tiles = (inter + kTile - 1) / kTile, items = routing.slots * tiles;
    const int chunks = (hidden + kChunk - 1) / kChunk;
    const Teams split(items, chunks);
    const int own_chunks = (chunks + split.parts - 1) / split.parts;
    const int first = min(split.part * own_chunks, chunks), end = min(first + own_chunks, chunks);
    const int first_column = first * kChunk + 8 * t;
    const long long up_rows = static_cast<long long>(inter) * hidden;  // from a row of gate to its row of up
    auto row_of = [&](int item) {
        const long long row = 2LL * routing.expert[item / tiles] * inter + item % tiles * kTile + i;
        return gate_up + row * hidden;
    };
    auto has_high = [&](int item) { return item % tiles * kTile + 8 < inter; };
    auto rows_of = [&](int item) { return Rows<kPairTiles>(routing, item / tiles, i, top_k); };

    Chunk gate, up;
    PairQueue<kPairTiles> queue(shared);
    if (split.team < items && first < end) {
        gate.load(row_of(split.team), has_high(split.team), first_column, hidden);
        queue.fetch(x, rows_of(split.team), first_column, hidden, 0);
    }
    __pipeline_commit();
    for (int item = split.team; item < items; item += split.teams) {
        const int slot = item / tiles, next_item = item + split.teams;
        const T* row = row_of(item);
        const Rows<kPairTiles> rows = rows_of(item);
        float gate_sums[kPairTiles][4] = {}, up_sums[kPairTiles][4] = {};
        for (int chunk = first; chunk < end; ++chunk) {
            const int column = chunk * kChunk + 8 * t;
            up.load(row + up_rows, has_high(item), column, hidden);
            if (chunk + 1 < end) {
                queue.fetch(x, rows, column + kChunk, hidden, queue.stage ^ 1);
            } else if (next_item < items) {
                queue.fetch(x, rows_of(next_item), first_column, hidden, queue.stage ^ 1);
            }
            __pipeline_commit();
            __pipeline_wait_prior(1);
            multiply<T>(gate_sums, gate, queue, rows.tiles);
            if (chunk + 1 < end) {
                gate.load(row, has_high(item), column + kChunk, hidden);
            } else if (next_item < items) {
                gate.load(row_of(next_item), has_high(next_item), first_column, hidden);
            }
            multiply<T>(up_sums, up, queue, rows.tiles);
            queue.stage ^= 1;
        }
        float* own = all_sums + warp * kSums;
        store_sums(own, gate_sums, rows.tiles);
        store_sums(own + kSums / 2, up_sums, rows.tiles);
        split.sync();
        const int first_pair = routing.first[slot], outputs = routing.count(slot) * kTile;
        const float* of_team = all_sums + (warp - split.part) * kSums;
        for (int o = split.part * 32 + lane; o < outputs; o += 32 * split.parts) {
            const int feature = o % kTile, pair = o / kTile;
            if (item % tiles * kTile + feature >= inter) continue;
            const int at = pair / kPairTile * kTileSums + feature * kPairTile + pair % kPairTile;
            float gate_sum = 0.0f, up_sum = 0.0f;
            for (int p = 0; p < split.parts; ++p) {
                gate_sum += of_team[p * kSums + at];
                up_sum += of_team[p * kSums + kSums / 2 + at];
            }
            const long long to = static_cast<long long>(routing.pairs[first_pair + pair]) * inter;
            middle[to + item % tiles * kTile + feature] =
                static_cast<T>(gate_sum / (1.0f + __expf(-gate_sum)) * up_sum);
        }
        split.sync();  // the sums have been read
    }
}

// out = the sum of weights * (middle down^T) over a token's pairs.
template <int kPairTiles, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    down_kernel(const T* __restrict__ middle, const int* __restrict__ ids, const float* __restrict__ weights,
                const T* __restrict__ down, T* __restrict__ out, int tokens, int experts, int top_k, int hidden,
                int inter) {
    constexpr int kSums = Sizes<kPairTiles>::kSums;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Routing routing;
    routing.build(ids, tokens * top_k, experts);

    float* all_sums = reinterpret_cast<float*>(shared);  // [kWarps][kSums], of which a warp uses [tokens][kTile]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int tiles = (hidden + kTile - 1) / kTile;
    const int of_expert = (inter + kChunk - 1) / kChunk, chunks = routing.slots * of_expert;
    const Teams split(tiles, chunks);
    const int own_chunks = (chunks + split.parts - 1) / split.parts;
    const int first = min(split.part * own_chunks, chunks), end = min(first + own_chunks, chunks);

    // Chunk c of a tile is kChunk columns of the expert of slot c / of_expert, from column c % of_expert * kChunk on.
    auto load = [&](Chunk& to, int tile, int chunk) {
        const long long row = static_cast<long long>(routing.expert[chunk / of_expert]) * hidden + tile * kTile + i;
        to.load(down + row * inter, tile * kTile + 8 < hidden, chunk % of_expert * kChunk + 8 * t, inter);
    };
    PairQueue<kPairTiles> queue(shared);
    auto fetch = [&](int chunk, int to_stage) {
        const Rows<kPairTiles> rows(routing, chunk / of_expert, i, 1);
        queue.fetch(middle, rows, chunk % of_expert * kChunk + 8 * t, inter, to_stage);
    };
    Chunk even, odd;                                                       // the weights of every second chunk
    if (split.team < tiles && first < end) load(even, split.team, first);  // weights only: they need not wait
    llmk::griddepcontrol_wait();
    if (split.team < tiles && first < end) fetch(first, 0);
    __pipeline_commit();

    float* own = all_sums + warp * kSums;
    for (int tile = split.team; tile < tiles; tile += split.teams) {
        const int next_tile = tile + split.teams;
        for (int o = lane; o < tokens * kTile; o += 32) own[o] = 0.0f;
        float sums[kPairTiles][4] = {};
        // Multiply a chunk, after the loads of the next one have begun. At the end of a slot, add its sums to the table.
        auto advance = [&](int chunk, const Chunk& present, Chunk& next) {
            const bool last = chunk + 1 == end;
            if (!last || next_tile < tiles) {
                load(next, last ? next_tile : tile, last ? first : chunk + 1);
                fetch(last ? first : chunk + 1, queue.stage ^ 1);
            }
            __pipeline_commit();
            __pipeline_wait_prior(1);
            const int slot = chunk / of_expert, count = routing.count(slot);
            multiply<T>(sums, present, queue, (count + kPairTile - 1) / kPairTile);
            queue.stage ^= 1;
            if (!last && (chunk + 1) % of_expert != 0) return;
            __syncwarp();  // the previous slot's additions, or the zeros
#pragma unroll
            for (int n = 0; n < kPairTiles; ++n) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int place = kPairTile * n + 2 * t + h;
                    if (place >= count) continue;
                    const int pair = routing.pairs[routing.first[slot] + place];
                    const float weight = weights[pair];
                    float* to = own + pair / top_k * kTile + i;
                    to[0] += weight * sums[n][h];
                    to[8] += weight * sums[n][2 + h];
                }
                sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0.0f;
            }
        };
        int chunk = first;
        for (; chunk + 1 < end; chunk += 2) {
            advance(chunk, even, odd);
            advance(chunk + 1, odd, even);
        }
        if (chunk < end) {
            advance(chunk, even, odd);
            even = odd;
        }
        split.sync();
        const float* of_team = all_sums + (warp - split.part) * kSums;
        for (int o = split.part * 32 + lane; o < tokens * kTile; o += 32 * split.parts) {
            const int feature = tile * kTile + o % kTile;
            if (feature >= hidden) continue;
            float sum = 0.0f;
            for (int p = 0; p < split.parts; ++p) sum += of_team[p * kSums + o];
            out[static_cast<long long>(o / kTile) * hidden + feature] = static_cast<T>(sum);
        }
        split.sync();
    }
}

template <int kPairTiles, typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    constexpr int kBytes = Sizes<kPairTiles>::kBytes;
    const auto gate_up_of = gate_up_kernel<kPairTiles, T>;
    const auto down_of = down_kernel<kPairTiles, T>;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(gate_up_of, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    cudaFuncSetAttribute(down_of, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    // One block per SM, or a block per tile if there are fewer tiles.
    const long long most_tiles = static_cast<long long>(tokens) * top_k * ((inter + kTile - 1) / kTile);
    const int first_blocks = static_cast<int>(std::min<long long>(sms, most_tiles));
    gate_up_of<<<first_blocks, kThreads, kBytes, stream>>>(x, ids, gate_up, middle, tokens, experts, top_k, hidden,
                                                           inter);
    // The second kernel may start where SMs are free, and load its first weights, before the first kernel has ended.
    cudaFuncAttributes compiled = {};
    cudaFuncGetAttributes(&compiled, down_of);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(std::min(sms, (hidden + kTile - 1) / kTile));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = kBytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = compiled.ptxVersion >= 90 ? 1 : 0;
    cudaLaunchKernelEx(&config, down_of, static_cast<const T*>(middle), ids, weights, down, out, tokens, experts, top_k,
                       hidden, inter);
}

template <typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    if (tokens == 0) return;
    const auto decode = tokens <= kPairTile ? moe_decode<1, T> : moe_decode<kSlotPairs / kPairTile, T>;
    decode(x, ids, weights, gate_up, down, middle, out, tokens, experts, top_k, hidden, inter, stream);
}

extern "C" void moe_decode_f16(const __half* x, const int* ids, const float* weights, const __half* gate_up,
                               const __half* down, __half* middle, __half* out, int tokens, int experts, int top_k,
                               int hidden, int intermediate, cudaStream_t stream) {
    moe_decode(x, ids, weights, gate_up, down, middle, out, tokens, experts, top_k, hidden, intermediate, stream);
}

extern "C" void moe_decode_bf16(const __nv_bfloat16* x, const int* ids, const float* weights,
                                const __nv_bfloat16* gate_up, const __nv_bfloat16* down, __nv_bfloat16* middle,
                                __nv_bfloat16* out, int tokens, int experts, int top_k, int hidden, int intermediate,
                                cudaStream_t stream) {
    moe_decode(x, ids, weights, gate_up, down, middle, out, tokens, experts, top_k, hidden, intermediate, stream);
}
