// The attention of decode.cuh for 16-bit elements on tensor cores. With many query heads per group, eight here,
// multiply-adds on CUDA cores take longer than the memory traffic. Day 7 shows the measurements; day 12 derives
// ldmatrix and mma.sync.
//
// For kKeys keys a warp
//   - computes S = Q K^T: the eight heads are rows of operand A, whose other eight rows are zeros,
//   - runs the online softmax on S in registers: each lane holds four scores of one head,
//   - rounds the weights, which then have the layout of operand B,
//   - computes O^T += V^T P^T; ldmatrix.trans transposes the values.
// Each warp has its own queue in shared memory, filled by cp.async, and synchronizes with other warps only at the end.
#pragma once

#include "llmk/decode.cuh"
#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

namespace llmk {

template <typename T, int DIM>
struct TensorDecoder {
    static constexpr int kHeads = 8, kThreads = 128, kWarps = kThreads / 32,
                         kBlocks = 2;  // kBlocks: resident blocks per SM
    static constexpr int kKeys = 16;   // keys per warp and step
    static constexpr int kStages = 3;  // steps in the queue: one in use, two being copied
    static constexpr int kStep = kWarps * kKeys;
    static constexpr int kAcross = DIM / 16;
    static constexpr int kTile = kKeys * DIM;  // elements of a warp's keys, or values, of one step
    static constexpr int kPitch = DIM + 4;     // floats from row to row of the sums: no bank conflicts
    using Layout = Swizzle<DIM>;

    // In each step a thread copies kCopies pieces of 16 bytes of keys, and as many of values. Its first piece is in the
    // row of key `row`, at column `column`; piece i is row_offset(i) rows and column_offset(i) columns further.
    static constexpr int kEach = DIM / 64, kCopies = kKeys / 4 * kEach;
    static constexpr int kValues = kTile / 8;  // distance in the queue from a key to its value, in 16 bytes
    __device__ static constexpr int row_offset(int i) { return i / kEach * 4; }
    __device__ static constexpr int column_offset(int i) { return i % kEach * 64; }
    __device__ int offset(int i) const {
        return Layout::offset(lane / 8 + row_offset(i), column + column_offset(i)) / 8;
    }

    // Shared memory: the queues, reused for the sums of all warps; then each warp's maximum and sum.
    static constexpr int kEntries = kWarps * kStages * 2 * kTile / 8;
    static constexpr int kBytes = kEntries * 16 + kWarps * kHeads * static_cast<int>(sizeof(float2));
    static_assert(kWarps * kHeads * kPitch * 4 <= kEntries * 16, "the sums fit");

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp * kKeys + lane / 8, column = lane % 8 * 8;
    const float to_base_2;
    unsigned query[kAcross][4];
    float o[kAcross][4];         // columns lane / 4 and lane / 4 + 8; heads lane % 4 * 2 and lane % 4 * 2 + 1
    float m = -INFINITY, l = 0;  // m: maximum of head lane / 4; l: sum over this lane's keys only

    // q: [head_count, head_dim], the block's queries. Heads and columns that do not exist become zeros.
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

    // Process keys first ... end - 1. fetch(entries) starts this thread's copies of the next step.
    template <typename Fetch>
    __device__ __forceinline__ void process_keys(uint4* shared, int first, int end, Fetch fetch) {
        uint4* queue = shared + warp * kStages * 2 * kValues;
        const int steps = (end - first + kStep - 1) / kStep;
        for (int step = 0; step < kStages - 1; ++step) {
            if (step < steps) fetch(queue + step * 2 * kValues);
            __pipeline_commit();
        }
        int stage = 0;
        for (int step = 0; step < steps; ++step) {
            __pipeline_wait_prior(kStages - 2);
            __syncwarp();  // all lanes' copies are visible, and all lanes have used the previous step
            if (step + kStages - 1 < steps) fetch(queue + (stage == 0 ? kStages - 1 : stage - 1) * 2 * kValues);
            __pipeline_commit();
            add_keys(reinterpret_cast<const T*>(queue + stage * 2 * kValues),
                     end - first - step * kStep - warp * kKeys);
            stage = stage == kStages - 1 ? 0 : stage + 1;
        }
    }

    // One step: the scores of the warp's keys, of which `left` exist, the online softmax, the weighted sums of the
    // values.
    __device__ __forceinline__ void add_keys(const T* keys, int left) {
        const int my_row = lane % 8 + lane / 16 * 8,
                  my_column = lane / 8 % 2 * 8;  // the row whose address this lane passes to ldmatrix
        float s[2][4] = {};  // head lane / 4, keys lane % 4 * 2 and + 1, and 8 further; elements 2 and 3 are padding
#pragma unroll
        for (int c = 0; c < kAcross; ++c) {
            unsigned part[4];
            ldmatrix_x4(part, keys + Layout::offset(my_row, my_column, c));
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
        if (__any_sync(kAllLanes, correction != 1)) {  // a new maximum is rare after the first steps
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
            ldmatrix_x4_trans(part, keys + kTile + Layout::offset(my_row, my_column, c));
            mma_m16n8k16<T>(o[c], part, weights[0], weights[1]);
        }
    }

    // Merge the warps' sums, rescaled to the maximum of all warps. store(h, d, o, m, l) receives column d of head h,
    // and the head's maximum and sum.
    template <typename Store>
    __device__ __forceinline__ void finish(uint4* shared, int head_count, int head_dim, Store store) {
        float2* stats = reinterpret_cast<float2*>(shared + kEntries);  // [kWarps][kHeads]
        l = warp_sum<4>(l);
        if (lane % 4 == 0) stats[warp * kHeads + lane / 4] = make_float2(m, l);
        __syncthreads();                                 // stats are stored, and no warp reads its queue any longer
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
