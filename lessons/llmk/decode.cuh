// Attention of one query per sequence against many keys, as in decode. Day 7 derives it.
//
// A block handles a part of the keys of one key/value head, and up to kHeads query heads of its group: each key and
// value is loaded once and used for all of them. Within the block, a *team* of kTeam lanes holds a row, 16 bytes per
// lane, and handles 4 keys per step. Loads run ahead: each thread copies the 16 bytes that it will use itself to a
// queue in shared memory, so no thread waits for another.
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

constexpr int kSmallestPart = 64;  // keys per part, at least: fewer are not worth a block
constexpr int kCombineWarps = 8, kCombineThreads = 32 * kCombineWarps;
constexpr int kLargestHead = 128;

// Return the number of keys per part. Parts that would start past the last key are empty.
__device__ __forceinline__ int keys_per_part(int length, int splits) {
    return max(kSmallestPart, (length + splits - 1) / splits);
}

// Convert 16 bytes of a row to floats.
template <typename T>
__device__ __forceinline__ void unpack(uint4 bits, float* values) {
    const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) values[j] = static_cast<float>(elements[j]);
}

template <typename T, int kTeam, int kQueryHeads>
struct Decoder {
    static constexpr int kHeads = kQueryHeads, kThreads = 128;
    static constexpr int kBlocks = kHeads <= 4 ? 4 : 2;              // resident blocks per SM
    static constexpr int kKeys = 4;                                  // keys per team and step
    static constexpr int kStages = 3;                                // steps in the queue: one in use, two being copied
    static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));  // elements per lane
    static constexpr int kTeams = kThreads / kTeam;
    static constexpr int kStep = kTeams * kKeys;  // keys per block and step
    static constexpr int kScores =
        kHeads * kKeys;  // scores per team and step: number h * kKeys + i is head h with key i
    static constexpr int kOwn = kScores > kTeam ? kScores / kTeam : 1;   // scores per lane after the reduction
    static constexpr int kSame = kTeam > kScores ? kTeam / kScores : 1;  // lanes that hold the same score

    // Shared memory: the queue, reused for the sums of all teams; then each team's maximum and sum.
    static constexpr int kQueue = kStages * 2 * kKeys * kThreads;  // entries of 16 bytes
    static constexpr int kSums = kHeads * kThreads * 4 / static_cast<int>(sizeof(T));
    static constexpr int kEntries = kQueue > kSums ? kQueue : kSums;
    static constexpr int kBytes = kEntries * 16 + kThreads / kTeam * kHeads * static_cast<int>(sizeof(float2));

    // In each step a thread copies kCopies pieces of 16 bytes of keys, and as many of values. Its first piece is in the
    // row of key `row`, at column `column`; piece i is row_offset(i) rows further.
    static constexpr int kCopies = kKeys;
    static constexpr int kValues = kKeys * kThreads;  // distance in the queue from a key to its value, in 16 bytes
    __device__ static constexpr int row_offset(int i) { return i * kTeams; }
    __device__ static constexpr int column_offset(int) { return 0; }
    __device__ static constexpr int offset(int i) { return i * kThreads; }

    const int lane = threadIdx.x % kTeam, team = threadIdx.x / kTeam, row = team;
    const int column = lane * kWidth;  // this lane's first column of the row
    float query[kHeads][kWidth], o[kHeads][kWidth];
    float m = -INFINITY, l = 0;  // m: maximum of this lane's head; l: sum over this lane's keys only

    // own(): the first of this lane's scores, which belong to head own() / kKeys. lane_of(): the first lane that holds
    // a score.
    __device__ int own() const { return kScores > kTeam ? lane * kOwn : lane / kSame; }
    __device__ static constexpr int lane_of(int score) { return kScores > kTeam ? score / kOwn : score * kSame; }

    // q: [head_count, head_dim], the block's queries. Heads and columns that do not exist become zeros.
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

    // Process keys first ... end - 1. fetch(entries) copies this thread's 16 bytes of the team's next kKeys keys to
    // entries[i * kThreads], and of their values to entries[(kKeys + i) * kThreads]. Key i of step s is first + s *
    // kStep + i * kTeams + team; for keys past the end it writes zeros.
    template <typename Fetch>
    __device__ __forceinline__ void process_keys(uint4* shared, int first, int end, Fetch fetch) {
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

    // One step: the scores of the team's keys, the online softmax, the weighted sums of the values.
    __device__ __forceinline__ void add_keys(const uint4* entries, int first, int end) {
        float s[kScores];  // partial scores over this lane's columns
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

        // The online softmax. Each lane processes its own scores.
        float new_m = m;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            const int key = first + (own() + j) % kKeys * kTeams + team;
            if (key >= end) s[j] = -INFINITY;
            new_m = fmaxf(new_m, s[j]);
        }
#pragma unroll
        for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) {  // over the other keys of this head
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
        if (__any_sync(kAllLanes, correction != 1)) {  // a new maximum is rare after the first steps
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
                const float c = __shfl_sync(kAllLanes, correction, lane_of(h * kKeys), kTeam);
#pragma unroll
                for (int j = 0; j < kWidth; ++j) o[h][j] *= c;
            }
        }

        // Weighted sum of the values; the lanes that own the weights broadcast them.
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

    // Merge the teams' sums, rescaled to the maximum of all teams. store(h, d, o, m, l) receives column d of head h,
    // and the head's maximum and sum.
    template <typename Store>
    __device__ __forceinline__ void finish(uint4* shared, int head_count, int head_dim, Store store) {
        float2* team_stats = reinterpret_cast<float2*>(shared + kEntries);  // [kTeams][kHeads]
#pragma unroll
        for (int reach = kSame; reach < kSame * kKeys / kOwn; reach *= 2) l += __shfl_xor_sync(kAllLanes, l, reach);
        if (lane == lane_of(own() / kKeys * kKeys)) team_stats[team * kHeads + own() / kKeys] = make_float2(m, l);
        __syncthreads();                                 // stats are stored, and no thread reads the queue any longer
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

// Combine the parts of one query head, 32 at a time, with one block of kCombineThreads. Each warp holds the maxima and
// sums of 32 parts, one per lane, and adds the weighted sums of every kCombineWarps-th part, four columns per lane.
template <typename T>
__device__ __forceinline__ void combine_parts(const float* sums, const float2* stats, int parts, T* out, int head_dim) {
    constexpr int kColumns = 4, kEach = 32 / kCombineWarps;  // parts per warp
    __shared__ float4 warp_o[kCombineWarps][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool has_columns = lane * kColumns < head_dim;
    float m = -INFINITY, l = 0;  // l: sum over this lane's parts only
    float4 o = make_float4(0, 0, 0, 0);
    auto add = [&o](float4 sum, float c) {
        o = make_float4(o.x + sum.x * c, o.y + sum.y * c, o.z + sum.z * c, o.w + sum.w * c);
    };
    for (int first = 0; first < parts; first += 32) {
        float4 sum[kEach];  // all values are loaded before the first one is used
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

// griddepcontrol.launch_dependents: let the next kernel start, if launch_dependent launched it. Its blocks start where
// there is room once all blocks of this kernel have called this or ended. Source: PTX ISA, section "Parallel
// Synchronization and Communication Instructions: griddepcontrol".
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// griddepcontrol.wait: wait until the previous kernel has ended and its writes are visible. Needed in kernels that
// launch_dependent launches.
__device__ __forceinline__ void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// Launch a kernel with programmatic stream serialization (sm_90; elsewhere an ordinary launch): its blocks may start
// before the previous kernel has ended, so each thread calls griddepcontrol_wait before it reads that kernel's results.
template <typename... Parameters, typename... Arguments>
void launch_dependent(void (*second)(Parameters...), int blocks, int threads, cudaStream_t stream,
                      Arguments... arguments) {
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
