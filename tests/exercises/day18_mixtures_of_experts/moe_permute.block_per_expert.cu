// Another design: a block per expert loops over all pairs, 256 at a time, and assigns rows to the pairs of its expert.
// The expert's first row is the number of pairs with a lower expert, which the block counts.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ int block_total(int mine, int* of_warp) {
    __syncthreads();
    const int in_warp = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = in_warp;
    __syncthreads();
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += of_warp[w];
    return sum;
}

__global__ void __launch_bounds__(kThreads) rows_kernel(const int* ids, int* offsets, int* rows_of, int pairs) {
    __shared__ int of_warp[kWarps];
    const int expert = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lower = 0;
    for (int pair = threadIdx.x; pair < pairs; pair += kThreads) lower += ids[pair] < expert;
    int row = block_total(lower, of_warp);
    if (threadIdx.x == 0) offsets[expert] = row;
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) offsets[expert + 1] = pairs;
    for (int first = 0; first < pairs; first += kThreads) {
        const int pair = first + threadIdx.x;
        const bool own = pair < pairs && ids[pair] == expert;
        const unsigned lanes = __ballot_sync(0xffffffffu, own);
        __syncthreads();
        if (lane == 0) of_warp[warp] = __popc(lanes);
        __syncthreads();
        int before = row + __popc(lanes & ((1u << lane) - 1));
        for (int w = 0; w < kWarps; ++w) {
            if (w < warp) before += of_warp[w];
            row += of_warp[w];
        }
        if (own) rows_of[pair] = before;
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
    rows_kernel<<<experts, kThreads, 0, stream>>>(ids, offsets, rows_of, tokens * top_k);
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
