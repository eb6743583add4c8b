// The same attention of one query per sequence as in decode.cuh, for 16-bit numbers on tensor cores: where a group has many
// query heads, eight here, their multiply-adds on CUDA cores take longer than the bytes. Day 7 shows the figures.
//
// Eight heads are the eight columns of operand B. With kKeys keys a warp
//   - multiplies S = Q K^T: the heads are rows of operand A, whose other eight rows are zeros,
//   - does the online softmax on S where it is: a lane has four scores of one head,
//   - rounds the weights, which thereby are operand B of the next product already,
//   - and multiplies O^T += V^T P^T, for which ldmatrix transposes the values.
// A warp has a queue of its own in shared memory, filled by cp.async, and waits for no other until the end.
#pragma once

#include "llmk/decode.cuh"
#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

namespace llmk {

template <typename T, int DIM>
struct TensorDecoder {
    static constexpr int kHeads = 8, kThreads = 128, kWarps = kThreads / 32, kBlocks = 2;  // blocks on an SM
    static constexpr int kKeys = 16;                                                       // of one warp, in one step
    static constexpr int kStages = 3;  // steps in the queue: one is used, two are on their way
    static constexpr int kStep = kWarps * kKeys;
    static constexpr int kAcross = DIM / 16;
    static constexpr int kTile = kKeys * DIM;  // elements of a warp's keys, or values, of one step
    static constexpr int kPitch = DIM + 4;     // floats of a row of sums: no bank conflict
    using Place = Swizzle<DIM>;

    // What a thread copies in a step: kCopies times 16 bytes of keys, and as many of values. The first are of key `row` at
    // column `column`; the i-th ones lie rows_on(i) rows and columns_on(i) columns further on.
    static constexpr int kEach = DIM / 64, kCopies = kKeys / 4 * kEach;
    static constexpr int kValues = kTile / 8;  // how far behind its key a value lies in the queue, in 16 bytes
    __device__ static constexpr int rows_on(int i) { return i / kEach * 4; }
    __device__ static constexpr int columns_on(int i) { return i % kEach * 64; }
    __device__ int place(int i) const { return Place::place(lane / 8 + rows_on(i), column + columns_on(i)) / 8; }

    // Shared memory: the queues, later used for the sums of all warps, and then the warps' maxima and sums.
    static constexpr int kEntries = kWarps * kStages * 2 * kTile / 8;
    static constexpr int kBytes = kEntries * 16 + kWarps * kHeads * static_cast<int>(sizeof(float2));
    static_assert(kWarps * kHeads * kPitch * 4 <= kEntries * 16, "the sums fit");

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp * kKeys + lane / 8, column = lane % 8 * 8;
    const float to_base_2;
    unsigned query[kAcross][4];
    float o[kAcross][4];         // of columns lane / 4 and 8 further on, of heads lane % 4 * 2 and the next
    float m = -INFINITY, l = 0;  // of head lane / 4; l of this lane's keys only

    // q: [head_count, head_dim], the queries of the block. Heads and columns that do not exist are zeros.
    __device__ TensorDecoder(const T* q, int head_count, int head_dim, float scale) : to_base_2(scale * kLog2E) {
#pragma unroll
        for (int c = 0; c < kAcross; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int at = c * 16 + e / 2 * 8 + lane % 4 * 2;
                const bool there = e % 2 == 0 && lane / 4 < head_count && at < head_dim;
                query[c][e] = there ? *reinterpret_cast<const unsigned*>(q + lane / 4 * head_dim + at) : 0;
                o[c][e] = 0;
            }
        }
    }

    // Goes through keys first ... end - 1. fetch(entries) copies what this thread copies of the next step.
    template <typename Fetch>
    __device__ __forceinline__ void walk(uint4* shared, int first, int end, Fetch fetch) {
        uint4* queue = shared + warp * kStages * 2 * kValues;
        const int steps = (end - first + kStep - 1) / kStep;
        for (int step = 0; step < kStages - 1; ++step) {
            if (step < steps) fetch(queue + step * 2 * kValues);
            __pipeline_commit();
        }
        int stage = 0;
        for (int step = 0; step < steps; ++step) {
            __pipeline_wait_prior(kStages - 2);
            __syncwarp();  // what the other lanes copied is here, too, and all are done with the step before
            if (step + kStages - 1 < steps) fetch(queue + (stage == 0 ? kStages - 1 : stage - 1) * 2 * kValues);
            __pipeline_commit();
            add_keys(reinterpret_cast<const T*>(queue + stage * 2 * kValues),
                     end - first - step * kStep - warp * kKeys);
            stage = stage == kStages - 1 ? 0 : stage + 1;
        }
    }

    // One step: the scores of the warp's keys, of which `left` exist, the online softmax, the weighted sums of the values.
    __device__ __forceinline__ void add_keys(const T* keys, int left) {
        const int my_row = lane % 8 + lane / 16 * 8, my_column = lane / 8 % 2 * 8;  // that this lane names to ldmatrix
        float s[2][4] =
            {};  // of head lane / 4, with keys lane % 4 * 2 and the next, and 8 further on; the rest is of no head
#pragma unroll
        for (int c = 0; c < kAcross; ++c) {
            unsigned part[4];
            ldmatrix_x4(part, keys + Place::place(my_row, my_column, c));
            mma_m16n8k16<T>(s[0], query[c], part[0], part[1]);
            mma_m16n8k16<T>(s[1], query[c], part[2], part[3]);
        }

        float new_m = m;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                s[j][e] = j * 8 + lane % 4 * 2 + e < left ? s[j][e] * to_base_2 : -INFINITY;
                new_m = fmaxf(new_m, s[j][e]);
            }
        }
        new_m = warp_max<4>(new_m);
        const float base = finite_max_or_zero(new_m);
        const float correction = exp2f(m - base);
        m = new_m;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                s[j][e] = exp2f(s[j][e] - base);
                sum += s[j][e];
            }
        }
        l = l * correction + sum;
        if (__any_sync(kAllLanes, correction != 1)) {  // seldom, after the first steps
            const float even = __shfl_sync(kAllLanes, correction, lane % 4 * 8);
            const float odd = __shfl_sync(kAllLanes, correction, lane % 4 * 8 + 4);
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
#pragma unroll
                for (int e = 0; e < 4; ++e) o[c][e] *= e % 2 == 0 ? even : odd;
            }
        }

        const unsigned weights[2] = {pack_pair<T>(s[0][0], s[0][1]), pack_pair<T>(s[1][0], s[1][1])};
#pragma unroll
        for (int c = 0; c < kAcross; ++c) {
            unsigned part[4];
            ldmatrix_x4_trans(part, keys + kTile + Place::place(my_row, my_column, c));
            mma_m16n8k16<T>(o[c], part, weights[0], weights[1]);
        }
    }

    // The warps' sums become one: all are brought to the largest maximum. store(h, d, o, m, l) gets column d of head h, and
    // the head's maximum and sum.
    template <typename Store>
    __device__ __forceinline__ void finish(uint4* shared, int head_count, int head_dim, Store store) {
        float2* stats = reinterpret_cast<float2*>(shared + kEntries);  // [kWarps][kHeads]
        l = warp_sum<4>(l);
        if (lane % 4 == 0) stats[warp * kHeads + lane / 4] = make_float2(m, l);
        __syncthreads();                                 // and nobody uses the queues any more
        float* sums = reinterpret_cast<float*>(shared);  // [kWarps][kHeads][kPitch]
#pragma unroll
        for (int c = 0; c < kAcross; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sums[(warp * kHeads + lane % 4 * 2 + e % 2) * kPitch + c * 16 + e / 2 * 8 + lane / 4] = o[c][e];
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < head_count * head_dim; i += kThreads) {
            const int h = i / head_dim, d = i % head_dim;
            float block_m = -INFINITY, block_l = 0, sum = 0;
            for (int w = 0; w < kWarps; ++w) block_m = fmaxf(block_m, stats[w * kHeads + h].x);
            for (int w = 0; w < kWarps; ++w) {
                const float2 its = stats[w * kHeads + h];
                const float c = its.y > 0 ? exp2f(its.x - block_m) : 0.0f;
                block_l += its.y * c;
                sum += sums[(w * kHeads + h) * kPitch + d] * c;
            }
            store(h, d, sum, block_m, block_l);
        }
    }
};

}  // namespace llmk
