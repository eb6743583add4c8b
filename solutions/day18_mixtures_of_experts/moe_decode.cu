// A mixture of experts for 1 to 64 tokens, in two kernels. Each chosen expert's weights are read once, by whichever warp
// has their tile, for all tokens that chose it, so the time is that of reading these weights.
//
//   x, out: [tokens, hidden]     ids, weights: [tokens, top_k]     gate_up: [experts, 2 inter, hidden], gate above up
//   down: [experts, hidden, inter]     middle: [tokens * top_k, inter], the workspace
//
// A *pair* is a token with one of its experts. The first kernel computes silu(gate) * up of every pair, a tile of eight
// features of an expert at a time. In the second a tile is 16 features of out: it goes through all chosen experts,
// so their weighted results are added up in shared memory, without atomics and in the same order in every run.
//
// A team of `parts` warps computes a tile: each warp sums over a part of k. Tensor cores multiply as in day 4's few_rows,
// but a lane loads its weights straight into registers: 256 neighboring bytes of each of eight rows per chunk, one chunk
// ahead of the one that it multiplies. DRAM delivers long pieces of few rows faster than short pieces of many.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/decode.cuh"
#include "llmk/few_rows.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"

constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kMostTokens = 64;
constexpr int kMostExperts = 1024, kMostPairs = 1024;
constexpr int kTile = 8;   // features of mma.sync; a warp multiplies two such tiles in turn
constexpr int kStep = 32;  // columns that a lane's 16 bytes of each row make up
constexpr int kSteps = 4;  // steps per chunk
constexpr int kChunk = kSteps * kStep;
constexpr int kRowTiles = kMostTokens / 16;
constexpr int kSums = kMostTokens * kTile;  // floats of a warp and tile: [pair or token][feature]
constexpr int kSharedBytes = kWarps * 2 * kSums * 4;

// The pairs, sorted by expert. A *slot* is an expert that at least one token chose.
struct Routing {
    int expert[kMostExperts];     // the expert of each slot
    int first[kMostExperts + 1];  // the first pair of each slot, in `pairs`
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
            int before = 0, used = 0;
            for (int some = 0; some < experts; some += 32) {
                const int own = some + lane < experts ? next[some + lane] : 0;
                int up_to_here = own;
#pragma unroll
                for (int distance = 1; distance < 32; distance *= 2) {
                    const int other = __shfl_up_sync(llmk::kAllLanes, up_to_here, distance);
                    if (lane >= distance) up_to_here += other;
                }
                const unsigned chosen = __ballot_sync(llmk::kAllLanes, own > 0);
                if (own > 0) {
                    const int slot = used + __popc(chosen & ((1u << lane) - 1));
                    expert[slot] = some + lane;
                    first[slot] = next[some + lane] = before + up_to_here - own;
                }
                used += __popc(chosen);
                before += __shfl_sync(llmk::kAllLanes, up_to_here, 31);
            }
            if (lane == 0) {
                first[used] = before;
                slots = used;
            }
        }
        __syncthreads();
        // The order of an expert's pairs may differ from run to run; a pair's result does not depend on it.
        for (int p = threadIdx.x; p < count; p += kThreads) pairs[atomicAdd(next + ids[p], 1)] = p;
        __syncthreads();
    }
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

// The rows of operand A that a lane loads: those of pairs i and i + 8 of each 16 pairs of a slot; -1 for no pair.
struct Rows {
    int tiles;  // tiles of 16 pairs
    int row[kRowTiles][2];

    // pairs_per_row: the number of neighboring pairs that share a row
    __device__ Rows(const Routing& routing, int slot, int i, int pairs_per_row) {
        const int first = routing.first[slot], count = routing.first[slot + 1] - first;
        tiles = (count + 15) / 16;
#pragma unroll
        for (int m = 0; m < 2 * kRowTiles; ++m) {
            row[m / 2][m % 2] = 8 * m + i < count ? routing.pairs[first + 8 * m + i] / pairs_per_row : -1;
        }
    }
};

// Eight rows and kChunk columns of weights: lane (i, t) has columns 8 t ... 8 t + 7 of row i, of each 32 columns.
struct Chunk {
    uint4 steps[kSteps];

    // row: the row of this lane     column: its first column in this chunk     Columns outside of the matrix become 0.
    template <typename T>
    __device__ __forceinline__ void load(const T* row, int column, int columns) {
#pragma unroll
        for (int s = 0; s < kSteps; ++s, column += kStep) {
            steps[s] = make_uint4(0, 0, 0, 0);
            if (column < columns) steps[s] = __ldcs(reinterpret_cast<const uint4*>(row + column));
        }
    }
};

// Multiply the pairs' rows of `left` [.., columns] by a chunk of weights, and add the products to `sums`.
template <typename T>
__device__ __forceinline__ void multiply(float (&sums)[kRowTiles][4], const Chunk& chunk, const T* left,
                                         const Rows& rows, int column, int columns) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s, column += kStep) {
        const uint4 b = chunk.steps[s];
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
            if (m >= rows.tiles) break;
            uint4 a[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const T* row = left + static_cast<long long>(rows.row[m][h]) * columns;
                a[h] = llmk::eight_columns(row, rows.row[m][h] >= 0, column, columns, true);
            }
            const unsigned first[4] = {a[0].x, a[1].x, a[0].y, a[1].y}, second[4] = {a[0].z, a[1].z, a[0].w, a[1].w};
            llmk::mma_m16n8k16<T>(sums[m], first, b.x, b.y);
            llmk::mma_m16n8k16<T>(sums[m], second, b.z, b.w);
        }
    }
}

// Store the accumulators of one or all 16 x 8 tiles as [pair][feature].
__device__ __forceinline__ void store_sums(float* to, const float (&sums)[kRowTiles][4], int tiles) {
    float2* pairs = reinterpret_cast<float2*>(to) + threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        if (m >= tiles) break;
        pairs[64 * m] = make_float2(sums[m][0], sums[m][1]);
        pairs[64 * m + 32] = make_float2(sums[m][2], sums[m][3]);
    }
}

// middle = silu(x gate^T) * (x up^T), for every pair.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    gate_up_kernel(const T* __restrict__ x, const int* __restrict__ ids, const T* __restrict__ gate_up,
                   T* __restrict__ middle, int tokens, int experts, int top_k, int hidden, int inter) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Routing routing;
    llmk::griddepcontrol_launch_dependents();
    routing.build(ids, tokens * top_k, experts);

    float* all_sums = reinterpret_cast<float*>(shared);  // [kWarps][2][kSums]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int tiles = inter / kTile, items = routing.slots * tiles, chunks = (hidden + kChunk - 1) / kChunk;
    const Teams split(items, chunks);
    const int own_chunks = (chunks + split.parts - 1) / split.parts;
    const int first = min(split.part * own_chunks, chunks), end = min(first + own_chunks, chunks);
    const int first_column = first * kChunk + 8 * t;
    const long long up_rows = static_cast<long long>(inter) * hidden;  // from a row of gate to its row of up
    auto row_of = [&](int item) {
        const long long row = 2LL * routing.expert[item / tiles] * inter + item % tiles * kTile + i;
        return gate_up + row * hidden;
    };

    const T* row = gate_up;
    Chunk gate, up;
    if (split.team < items) {
        row = row_of(split.team);
        if (first < end) gate.load(row, first_column, hidden);
    }
    for (int item = split.team; item < items; item += split.teams) {
        const int slot = item / tiles;
        const Rows rows(routing, slot, i, top_k);
        float gate_sums[kRowTiles][4] = {}, up_sums[kRowTiles][4] = {};
        for (int chunk = first; chunk < end; ++chunk) {
            const int column = chunk * kChunk + 8 * t;
            up.load(row + up_rows, column, hidden);
            multiply(gate_sums, gate, x, rows, column, hidden);
            if (chunk + 1 < end) {
                gate.load(row, column + kChunk, hidden);
            } else if (item + split.teams < items) {
                row = row_of(item + split.teams);
                gate.load(row, first_column, hidden);
            }
            multiply(up_sums, up, x, rows, column, hidden);
        }
        float* own = all_sums + warp * 2 * kSums;
        store_sums(own, gate_sums, rows.tiles);
        store_sums(own + kSums, up_sums, rows.tiles);
        split.sync();
        const int first_pair = routing.first[slot], outputs = (routing.first[slot + 1] - first_pair) * kTile;
        const float* of_team = all_sums + (warp - split.part) * 2 * kSums;
        for (int o = split.part * 32 + lane; o < outputs; o += 32 * split.parts) {
            float gate = 0.0f, up_sum = 0.0f;
            for (int p = 0; p < split.parts; ++p) {
                gate += of_team[p * 2 * kSums + o];
                up_sum += of_team[p * 2 * kSums + kSums + o];
            }
            const long long pair = routing.pairs[first_pair + o / kTile];
            middle[pair * inter + item % tiles * kTile + o % kTile] =
                static_cast<T>(gate / (1.0f + __expf(-gate)) * up_sum);
        }
        split.sync();  // the sums have been read
    }
}

// out = the sum of weights * (middle down^T) over a token's pairs.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    down_kernel(const T* __restrict__ middle, const int* __restrict__ ids, const float* __restrict__ weights,
                const T* __restrict__ down, T* __restrict__ out, int tokens, int experts, int top_k, int hidden,
                int inter) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Routing routing;
    routing.build(ids, tokens * top_k, experts);

    float* all_sums = reinterpret_cast<float*>(shared);  // [kWarps][2][kSums]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int tiles = (hidden + 2 * kTile - 1) / (2 * kTile);
    const int of_expert = (inter + kChunk - 1) / kChunk, chunks = routing.slots * of_expert;
    const Teams split(tiles, chunks);
    const int own_chunks = (chunks + split.parts - 1) / split.parts;
    const int first = min(split.part * own_chunks, chunks), end = min(first + own_chunks, chunks);

    // Chunk c of a tile is kChunk columns of the expert of slot c / of_expert, from column c % of_expert * kChunk on.
    auto load = [&](Chunk& to, int tile, int half, int chunk) {
        const int feature = (2 * tile + half) * kTile + i;
        const long long row = static_cast<long long>(routing.expert[chunk / of_expert]) * hidden + feature;
        const int columns = feature < hidden ? inter : 0;  // 0 if the feature is past the last row of down
        to.load(down + row * inter, chunk % of_expert * kChunk + 8 * t, columns);
    };
    Chunk low, high;
    if (split.team < tiles && first < end) load(low, split.team, 0, first);  // weights only: they need not wait
    llmk::griddepcontrol_wait();

    float* own = all_sums + warp * 2 * kSums;
    for (int tile = split.team; tile < tiles; tile += split.teams) {
        for (int o = lane; o < tokens * 2 * kTile; o += 32) own[o] = 0.0f;
        for (int chunk = first; chunk < end;) {
            const int slot = chunk / of_expert, end_of_slot = min(end, (slot + 1) * of_expert);
            const Rows rows(routing, slot, i, 1);
            float sums[2][kRowTiles][4] = {};
            for (; chunk < end_of_slot; ++chunk) {
                const int column = chunk % of_expert * kChunk + 8 * t;
                load(high, tile, 1, chunk);
                multiply(sums[0], low, middle, rows, column, inter);
                if (chunk + 1 < end) {
                    load(low, tile, 0, chunk + 1);
                } else if (tile + split.teams < tiles) {
                    load(low, tile + split.teams, 0, first);
                }
                multiply(sums[1], high, middle, rows, column, inter);
            }
            __syncwarp();  // the previous slot's additions, or the zeros
#pragma unroll
            for (int m = 0; m < 2 * kRowTiles; ++m) {
                const int pair = rows.row[m / 2][m % 2];
                if (pair < 0) continue;
                const float weight = weights[pair];
#pragma unroll
                for (int w = 0; w < 2; ++w) {
                    const float* add = sums[w][m / 2] + m % 2 * 2;
                    float2* to = reinterpret_cast<float2*>(own + (pair / top_k * 2 + w) * kTile) + t;
                    *to = make_float2(to->x + weight * add[0], to->y + weight * add[1]);
                }
            }
        }
        split.sync();
        const float* of_team = all_sums + (warp - split.part) * 2 * kSums;
        for (int o = split.part * 32 + lane; o < tokens * 2 * kTile; o += 32 * split.parts) {
            const int feature = tile * 2 * kTile + o % (2 * kTile);
            if (feature >= hidden) continue;
            float sum = 0.0f;
            for (int p = 0; p < split.parts; ++p) sum += of_team[p * 2 * kSums + o];
            out[static_cast<long long>(o / (2 * kTile)) * hidden + feature] = static_cast<T>(sum);
        }
        split.sync();
    }
}

template <typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    if (tokens == 0) return;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int most_slots = std::min(experts, tokens * top_k);
    cudaFuncSetAttribute(gate_up_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    cudaFuncSetAttribute(down_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    // One block per SM, or a block per tile if there are fewer tiles.
    const int first_blocks = std::min<long long>(sms, static_cast<long long>(most_slots) * (inter / kTile));
    gate_up_kernel<T><<<first_blocks, kThreads, kSharedBytes, stream>>>(x, ids, gate_up, middle, tokens, experts, top_k,
                                                                        hidden, inter);
    // The second kernel may start where SMs are free, and load its first weights, before the first kernel has ended.
    cudaFuncAttributes compiled = {};
    cudaFuncGetAttributes(&compiled, down_kernel<T>);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(std::min(sms, hidden / kTile));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = kSharedBytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = compiled.ptxVersion >= 90 ? 1 : 0;
    cudaLaunchKernelEx(&config, down_kernel<T>, static_cast<const T*>(middle), ids, weights, down, out, tokens, experts,
                       top_k, hidden, inter);
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
