// Another design: one block assigns all rows, one chunk of pairs at a time. Shared memory holds the next free row of
// each expert. Each thread counts earlier pairs of its chunk with the same expert. A second kernel copies the rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 1024;
constexpr int kMostExperts = 1024;

__global__ void __launch_bounds__(kThreads)
    rows_kernel(const int* ids, int* offsets, int* rows_of, int pairs, int experts) {
    __shared__ int next[2][kMostExperts + 1];
    __shared__ int of_chunk[kThreads];
    const int thread = threadIdx.x;
    next[0][thread] = 0;
    __syncthreads();
    for (int pair = thread; pair < pairs; pair += kThreads) atomicAdd(&next[0][ids[pair]], 1);
    __syncthreads();
    int from = 0;
    for (int distance = 1; distance < kMostExperts; distance *= 2) {
        next[1 - from][thread] = next[from][thread] + (thread >= distance ? next[from][thread - distance] : 0);
        from = 1 - from;
        __syncthreads();
    }
    int* row = next[1 - from];  // an exclusive scan of the counts: the next free row of each expert
    row[thread] = thread > 0 ? next[from][thread - 1] : 0;
    __syncthreads();
    if (thread < experts) offsets[thread] = row[thread];
    if (thread == 0) offsets[experts] = pairs;
    for (int first = 0; first < pairs; first += kThreads) {
        const int count = min(kThreads, pairs - first);
        __syncthreads();
        if (thread < count) of_chunk[thread] = ids[first + thread];
        __syncthreads();
        const int expert = thread < count ? of_chunk[thread] : -1;
        int earlier = 0;
        for (int other = 0; other < thread && thread < count; ++other) earlier += of_chunk[other] == expert;
        if (expert >= 0) rows_of[first + thread] = row[expert] + earlier;
        __syncthreads();
        if (expert >= 0) atomicAdd(row + expert, 1);
    }
}

template <typename T>
__global__ void copy_kernel(const T* x, const int* rows_of, T* out, int top_k, int hidden) {
    constexpr int kWidth = 16 / sizeof(T);
    for (int i = threadIdx.x * kWidth; i < hidden; i += blockDim.x * kWidth) {
        const uint4 vector = *reinterpret_cast<const uint4*>(x + static_cast<long long>(blockIdx.x) * hidden + i);
        for (int j = 0; j < top_k; ++j) {
            const long long row = rows_of[static_cast<long long>(blockIdx.x) * top_k + j];
            *reinterpret_cast<uint4*>(out + row * hidden + i) = vector;
        }
    }
}

template <typename T>
void moe_permute(const T* x, const int* ids, T* out, int* offsets, int* rows_of, int tokens, int experts, int top_k,
                 int hidden, cudaStream_t stream) {
    rows_kernel<<<1, kThreads, 0, stream>>>(ids, offsets, rows_of, tokens * top_k, experts);
    if (tokens > 0) copy_kernel<<<tokens, 64, 0, stream>>>(x, rows_of, out, top_k, hidden);
}

extern "C" void moe_permute_f32(const float* x, const int* ids, float* out, int* offsets, int* rows_of, int* work,
                                int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, tokens, experts, top_k, hidden, stream);
}

extern "C" void moe_permute_f16(const __half* x, const int* ids, __half* out, int* offsets, int* rows_of, int* work,
                                int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, tokens, experts, top_k, hidden, stream);
}

extern "C" void moe_permute_bf16(const __nv_bfloat16* x, const int* ids, __nv_bfloat16* out, int* offsets, int* rows_of,
                                 int* work, int tokens, int experts, int top_k, int hidden, cudaStream_t stream) {
    moe_permute(x, ids, out, offsets, rows_of, tokens, experts, top_k, hidden, stream);
}
