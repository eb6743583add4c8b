// Attention of one query per sequence against many keys, as when a model decodes. Day 7 derives it.
//
// A block owns a part of the keys of one key/value head, and up to kHeads query heads of its group: each key and value is
// fetched once and used for all of them. Within the block a *team* of kTeam lanes holds a row, 16 bytes a lane, and handles
// 4 keys in each step. What the next steps need is already on its way from memory: every thread copies the 16 bytes that
// it will use itself to a queue in shared memory, so nobody waits for anybody else.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"

namespace llmk {

constexpr int kSmallestPart = 64;  // fewer keys are not worth a block
constexpr int kCombineWarps = 8, kCombineThreads = 32 * kCombineWarps;
constexpr int kLargestHead = 128;

// How many keys each part has. Parts that would begin past the last key do not exist.
__device__ __forceinline__ int keys_per_part(int length, int splits) {
    return max(kSmallestPart, (length + splits - 1) / splits);
}

// 16 bytes of a row as floats.
template <typename T>
__device__ __forceinline__ void unpack(uint4 bits, float* values) {
    const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) values[j] = static_cast<float>(elements[j]);
}

template <typename T, int kTeam, int kQueryHeads>
struct Decoder {
    static constexpr int kHeads = kQueryHeads, kThreads = 128;
    static constexpr int kBlocks = kHeads <= 4 ? 4 : 2;  // on an SM at a time
    static constexpr int kKeys = 4;                      // of one team, in one step
    static constexpr int kStages = 3;                    // steps in the queue: one is used, two are on their way
    static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));  // elements of a lane
    static constexpr int kTeams = kThreads / kTeam;
    static constexpr int kStep = kTeams * kKeys;    // keys of the block in one step
    static constexpr int kScores = kHeads * kKeys;  // of a team in one step: number h * kKeys + i is head h with key i
    static constexpr int kOwn = kScores > kTeam ? kScores / kTeam : 1;   // scores that a lane has after they are summed
    static constexpr int kSame = kTeam > kScores ? kTeam / kScores : 1;  // lanes that have the same score

    // Shared memory: the queue, later used for the sums of all teams, and then the teams' maxima and sums.
    static constexpr int kQueue = kStages * 2 * kKeys * kThreads;  // entries of 16 bytes
    static constexpr int kSums = kHeads * kThreads * 4 / static_cast<int>(sizeof(T));
    static constexpr int kEntries = kQueue > kSums ? kQueue : kSums;
    static constexpr int kBytes = kEntries * 16 + kThreads / kTeam * kHeads * static_cast<int>(sizeof(float2));

    // What a thread copies in a step: kCopies times 16 bytes of keys, and as many of values. The first are of key `row` at
    // column `column`; the i-th ones lie rows_on(i) rows further on.
    static constexpr int kCopies = kKeys;
    static constexpr int kValues = kKeys * kThreads;  // how far behind its key a value lies in the queue, in 16 bytes
    __device__ static constexpr int rows_on(int i) { return i * kTeams; }
    __device__ static constexpr int columns_on(int) { return 0; }
    __device__ static constexpr int place(int i) { return i * kThreads; }

    const int lane = threadIdx.x % kTeam, team = threadIdx.x / kTeam, row = team;
    const int column = lane * kWidth;  // of the row: this lane's first
    float query[kHeads][kWidth], o[kHeads][kWidth];
    float m = -INFINITY, l = 0;  // of the head of this lane's scores; l of this lane's keys only

    // The first of this lane's scores, which are of head own() / kKeys; and the first lane that has a score.
    __device__ int own() const { return kScores > kTeam ? lane * kOwn : lane / kSame; }
    __device__ static constexpr int lane_of(int score) { return kScores > kTeam ? score / kOwn : score * kSame; }

    // q: [head_count, head_dim], the queries of the block. Heads and columns that do not exist are zeros.
    __device__ Decoder(const T* q, int head_count, int head_dim, float scale) {
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (column < head_dim && h < head_count) {
                bits = *reinterpret_cast<const uint4*>(q + static_cast<long long>(h) * head_dim + column);
            }
            unpack<T>(bits, query[h]);
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                query[h][j] *= scale * kLog2E;
                o[h][j] = 0;
            }
        }
    }

    // Goes through keys first ... end - 1. fetch(entries) copies this thread's 16 bytes of the next kKeys keys of its team to
    // entries[i * kThreads], and of their values to entries[(kKeys + i) * kThreads]. Key i of step s is
    // first + s * kStep + i * kTeams + team; zeros stand for those that do not exist.
    template <typename Fetch>
    __device__ __forceinline__ void walk(uint4* shared, int first, int end, Fetch fetch) {
        uint4* queue = shared + threadIdx.x;  // entry e of this thread is queue[e * kThreads]
        const int steps = (end - first + kStep - 1) / kStep;
        for (int step = 0; step < kStages - 1; ++step) {
            if (step < steps) fetch(queue + step * 2 * kKeys * kThreads);
            __pipeline_commit();
        }
        int stage = 0;
        for (int step = 0; step < steps; ++step) {
            const int next = stage == 0 ? kStages - 1 : stage - 1;
            if (step + kStages - 1 < steps) fetch(queue + next * 2 * kKeys * kThreads);
            __pipeline_commit();
            __pipeline_wait_prior(kStages - 1);
            add_keys(queue + stage * 2 * kKeys * kThreads, first + step * kStep, end);
            stage = stage == kStages - 1 ? 0 : stage + 1;
        }
    }

    // One step: the scores of the teams' keys, the online softmax, the weighted sums of the values.
    __device__ __forceinline__ void add_keys(const uint4* entries, int first, int end) {
        float s[kScores];  // first what this lane's columns add to all scores
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            float key[kWidth];
            unpack<T>(entries[i * kThreads], key);
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) sum += query[h][j] * key[j];
                s[h * kKeys + i] = sum;
            }
        }

        warp_sum_each<kTeam / 2, kScores>(s, lane);

        // The online softmax, each lane with its own scores.
        float new_m = m;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            const int key = first + (own() + j) % kKeys * kTeams + team;
            if (key >= end) s[j] = -INFINITY;
            new_m = fmaxf(new_m, s[j]);
        }
#pragma unroll
        for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) {  // the other keys of this head
            new_m = fmaxf(new_m, __shfl_xor_sync(kAllLanes, new_m, reach));
        }
        const float base = finite_max_or_zero(new_m);
        const float correction = exp2f(m - base);
        m = new_m;
        l *= correction;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            s[j] = exp2f(s[j] - base);
            l += s[j];
        }
        if (__any_sync(kAllLanes, correction != 1)) {  // seldom, after the first steps
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                const float c = __shfl_sync(kAllLanes, correction, lane_of(h * kKeys), kTeam);
#pragma unroll
                for (int j = 0; j < kWidth; ++j) o[h][j] *= c;
            }
        }

        // Weighted sum of the values: the weights come from the lanes that own them.
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            float value[kWidth];
            unpack<T>(entries[(kKeys + i) * kThreads], value);
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                const int score = h * kKeys + i;
                const float weight = __shfl_sync(kAllLanes, s[score % kOwn], lane_of(score), kTeam);
#pragma unroll
                for (int j = 0; j < kWidth; ++j) o[h][j] += weight * value[j];
            }
        }
    }

    // The teams' sums become one: all are brought to the largest maximum. store(h, d, o, m, l) gets column d of head h, and
    // the head's maximum and sum.
    template <typename Store>
    __device__ __forceinline__ void finish(uint4* shared, int head_count, int head_dim, Store store) {
        float2* team_stats = reinterpret_cast<float2*>(shared + kEntries);  // [kTeams][kHeads]
#pragma unroll
        for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) l += __shfl_xor_sync(kAllLanes, l, reach);
        if (lane == lane_of(own() / kKeys * kKeys)) team_stats[team * kHeads + own() / kKeys] = make_float2(m, l);
        __syncthreads();                                 // and nobody uses the queue any more
        float* sums = reinterpret_cast<float*>(shared);  // [kTeams][kHeads][kTeam * kWidth]
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
            float block_m = -INFINITY;
            for (int t = 0; t < kTeams; ++t) block_m = fmaxf(block_m, team_stats[t * kHeads + h].x);
            const float c = block_m == -INFINITY ? 0.0f : exp2f(team_stats[team * kHeads + h].x - block_m);
#pragma unroll
            for (int j = 0; j < kWidth; ++j) sums[((team * kHeads + h) * kWidth + j) * kTeam + lane] = o[h][j] * c;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < head_count * head_dim; i += kThreads) {
            const int h = i / head_dim, d = i % head_dim;
            float block_m = -INFINITY, block_l = 0, sum = 0;
            for (int t = 0; t < kTeams; ++t) block_m = fmaxf(block_m, team_stats[t * kHeads + h].x);
            for (int t = 0; t < kTeams; ++t) {
                const float2 stats = team_stats[t * kHeads + h];
                if (stats.y > 0) block_l += stats.y * exp2f(stats.x - block_m);
                sum += sums[((t * kHeads + h) * kWidth + d % kWidth) * kTeam + d / kWidth];
            }
            store(h, d, sum, block_m, block_l);
        }
    }
};

// One block of kCombineThreads for each query head adds up its parts, 32 at a time: each warp has the maxima and sums of all of
// them, a part in each lane, and adds the weighted sums of every kCombineWarps-th part, four columns in each lane.
//
// sums: [parts, head_dim]   stats: [parts], maximum and sum of each   out: [head_dim]
template <typename T>
__device__ __forceinline__ void combine_parts(const float* sums, const float2* stats, int parts, T* out, int head_dim) {
    constexpr int kColumns = 4, kEach = 32 / kCombineWarps;  // parts of a warp
    __shared__ float4 warp_o[kCombineWarps][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool has_columns = lane * kColumns < head_dim;
    float m = -INFINITY, l = 0;  // l of this lane's parts only
    float4 o = make_float4(0, 0, 0, 0);
    auto add = [&o](float4 sum, float c) {
        o = make_float4(o.x + sum.x * c, o.y + sum.y * c, o.z + sum.z * c, o.w + sum.w * c);
    };
    for (int first = 0; first < parts; first += 32) {
        float4 sum[kEach];  // asked for at once: reads one after the other would wait for each other
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int p = first + warp + i * kCombineWarps;
            sum[i] = p < parts && has_columns ? reinterpret_cast<const float4*>(sums + p * head_dim)[lane]
                                              : make_float4(0, 0, 0, 0);
        }
        const float2 part = first + lane < parts ? stats[first + lane] : make_float2(-INFINITY, 0);
        const float before = m;
        m = fmaxf(m, warp_max(part.x));
        const float rescale = exp2f(before - finite_max_or_zero(m)), c = exp2f(part.x - finite_max_or_zero(m));
        l = l * rescale + part.y * c;
        o = make_float4(o.x * rescale, o.y * rescale, o.z * rescale, o.w * rescale);
#pragma unroll
        for (int i = 0; i < kEach; ++i) add(sum[i], __shfl_sync(kAllLanes, c, warp + i * kCombineWarps));
    }
    warp_o[warp][lane] = o;
    __syncthreads();
    if (warp > 0) return;
    for (int w = 1; w < kCombineWarps; ++w) add(warp_o[w][lane], 1);
    const float inverse = reciprocal_or_zero(warp_sum(l));  // a sequence without keys gives zeros
    const float values[kColumns] = {o.x * inverse, o.y * inverse, o.z * inverse, o.w * inverse};
    if (has_columns) store_rounded(out + lane * kColumns, values, true, 0, kColumns);
}

// Says that the kernel after this one may start, if it was launched early (see launch_early): when all blocks have said so, or
// ended, its blocks take what room there is, and wait.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Waits for the end of the kernel that was launched before, where this one may start earlier (see launch_early).
__device__ __forceinline__ void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// Launches a kernel whose blocks may start before the kernel before has ended and its writes are visible: each of its threads
// calls griddepcontrol_wait. From Hopper on; elsewhere a plain launch.
template <typename... Parameters, typename... Arguments>
void launch_early(void (*second)(Parameters...), int blocks, int threads, cudaStream_t stream, Arguments... arguments) {
    cudaFuncAttributes compiled = {};
    cudaFuncGetAttributes(&compiled, second);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = compiled.ptxVersion >= 90 ? 1 : 0;
    cudaLaunchKernelEx(&config, second, static_cast<Parameters>(arguments)...);
}

}  // namespace llmk
