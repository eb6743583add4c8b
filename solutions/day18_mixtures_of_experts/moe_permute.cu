// Sort tokens by expert: histogram, scan, ranks, copy. The order is stable: pairs of one expert keep their order.
//
//   x: [tokens, hidden]     ids, rows_of: [tokens, top_k]     out: [tokens * top_k, hidden]     offsets: [experts + 1]
//   work: [(chunks + 1) * experts], with chunks of 256 pairs: the pairs of each expert in each chunk, then in all chunks
//
// The row of a pair is the sum of four counts: the pairs of lower experts, and the pairs of its expert in earlier
// chunks, in earlier warps of its chunk, and in lower lanes of its warp. No atomic decides an order, so every run gives
// the same result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kChunk = 256;  // pairs per chunk; a block handles one chunk
constexpr int kWarps = kChunk / 32;
constexpr int kMostExperts = 1024;
constexpr int kCopyThreads = 128;

// Return, in lane i, the sum over lanes 0 ... i.
__device__ __forceinline__ int inclusive_sum(int mine) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(llmk::kAllLanes, mine, distance);
        if (static_cast<int>(threadIdx.x % 32) >= distance) mine += other;
    }
    return mine;
}

// Step 1: count the pairs of each expert in each chunk, counts[chunk][expert]. A block handles one chunk.
__global__ void __launch_bounds__(kChunk) count_kernel(const int* ids, int* counts, int pairs, int experts) {
    __shared__ int histogram[kMostExperts];
    for (int e = threadIdx.x; e < experts; e += kChunk) histogram[e] = 0;
    __syncthreads();
    const long long pair = static_cast<long long>(blockIdx.x) * kChunk + threadIdx.x;
    if (pair < pairs) atomicAdd(histogram + ids[pair], 1);
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += kChunk) {
        counts[static_cast<long long>(blockIdx.x) * experts + e] = histogram[e];
    }
}

// Step 2: replace each count by the sum over earlier chunks, and append the sum over all. A warp handles one expert.
__global__ void __launch_bounds__(kChunk) scan_kernel(int* counts, int chunks, int experts) {
    const int expert = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (expert >= experts) return;
    int before = 0;
#pragma unroll 4
    for (int first = 0; first < chunks; first += 32) {
        int* own = counts + static_cast<long long>(first + lane) * experts + expert;
        const int count = first + lane < chunks ? *own : 0;
        const int up_to_here = inclusive_sum(count);
        if (first + lane < chunks) *own = before + up_to_here - count;
        before += __shfl_sync(llmk::kAllLanes, up_to_here, 31);
    }
    if (lane == 0) counts[static_cast<long long>(chunks) * experts + expert] = before;
}

// Step 3: the first row of each expert, and the row of each pair. A block handles one chunk.
__global__ void __launch_bounds__(kChunk)
    rank_kernel(const int* ids, const int* counts, int* offsets, int* rows_of, int pairs, int chunks, int experts) {
    __shared__ int first_row[kMostExperts];
    __shared__ int of_warp[kWarps][kMostExperts];  // pairs of an expert in each warp
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < kWarps * experts; i += kChunk) of_warp[i / experts][i % experts] = 0;
    if (warp == 0) {
        int before = 0;
        for (int first = 0; first < experts; first += 32) {
            const int e = first + lane;
            const int count = e < experts ? counts[static_cast<long long>(chunks) * experts + e] : 0;
            const int up_to_here = inclusive_sum(count);
            if (e < experts) first_row[e] = before + up_to_here - count;
            before += __shfl_sync(llmk::kAllLanes, up_to_here, 31);
        }
    }
    __syncthreads();

    const long long pair = static_cast<long long>(blockIdx.x) * kChunk + threadIdx.x;
    const int expert = pair < pairs ? ids[pair] : -1;
    const unsigned same = __match_any_sync(llmk::kAllLanes, expert);  // the lanes whose pair has this expert
    const int rank = __popc(same & ((1u << lane) - 1));
    if (expert >= 0 && rank == 0) of_warp[warp][expert] = __popc(same);
    __syncthreads();
    if (expert >= 0) {
        int row = first_row[expert] + counts[static_cast<long long>(blockIdx.x) * experts + expert] + rank;
        for (int w = 0; w < warp; ++w) row += of_warp[w][expert];
        rows_of[pair] = row;
    }
    if (blockIdx.x == 0) {
        for (int e = threadIdx.x; e < experts; e += kChunk) offsets[e] = first_row[e];
        if (threadIdx.x == 0) offsets[experts] = pairs;
    }
}

// Step 4: read the row of a token once, and write it top_k times. A block handles one token.
template <typename T>
__global__ void __launch_bounds__(kCopyThreads)
    copy_kernel(const T* __restrict__ x, const int* __restrict__ rows_of, T* __restrict__ out, int top_k, int hidden) {
    constexpr int kWidth = 16 / sizeof(T);
    const long long token = blockIdx.x;
    const int vectors = hidden / kWidth;
    const uint4* from = reinterpret_cast<const uint4*>(x) + token * vectors;
    uint4* to = reinterpret_cast<uint4*>(out);
#pragma unroll 4
    for (int i = threadIdx.x; i < vectors; i += kCopyThreads) {
        const uint4 vector = from[i];
        for (int j = 0; j < top_k; ++j) to[static_cast<long long>(rows_of[token * top_k + j]) * vectors + i] = vector;
    }
}

template <typename T>
void moe_permute(const T* x, const int* ids, T* out, int* offsets, int* rows_of, int* work, int tokens, int experts,
                 int top_k, int hidden, cudaStream_t stream) {
    const int pairs = tokens * top_k;
    const int chunks = (pairs + kChunk - 1) / kChunk;
    if (chunks > 0) count_kernel<<<chunks, kChunk, 0, stream>>>(ids, work, pairs, experts);
    scan_kernel<<<(experts + kWarps - 1) / kWarps, kChunk, 0, stream>>>(work, chunks, experts);
    const int blocks = chunks > 0 ? chunks : 1;  // without any pair, one block still writes offsets
    rank_kernel<<<blocks, kChunk, 0, stream>>>(ids, work, offsets, rows_of, pairs, chunks, experts);
    if (tokens > 0) copy_kernel<<<tokens, kCopyThreads, 0, stream>>>(x, rows_of, out, top_k, hidden);
}

extern "C" void moe_permute_f32(const float* x, const int* ids, float* out, int* offsets, int* rows_of, int* work,
                                int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, work, tokens, experts, top_k, hidden, stream);
}

extern "C" void moe_permute_f16(const __half* x, const int* ids, __half* out, int* offsets, int* rows_of, int* work,
                                int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, work, tokens, experts, top_k, hidden, stream);
}

extern "C" void moe_permute_bf16(const __nv_bfloat16* x, const int* ids, __nv_bfloat16* out, int* offsets, int* rows_of,
                                 int* work, int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, work, tokens, experts, top_k, hidden, stream);
}
