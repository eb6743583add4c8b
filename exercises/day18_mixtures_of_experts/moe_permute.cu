// Sort tokens by expert: histogram, scan, ranks, copy. The order is stable: pairs of one expert keep their order.
//
//   x: [tokens, hidden]     ids, rows_of: [tokens, top_k]     out: [tokens * top_k, hidden]     offsets: [experts + 1]
//   work: [(chunks + 1) * experts], with chunks of 256 pairs: the pairs of each expert in each chunk, then in all chunks
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

// TODO: kernels for the four steps: count the pairs of each expert in each chunk; sum over the chunks before; compute
// TODO: offsets and the row of each pair, without atomics that decide the order; copy the rows, 16 bytes at a time.

template <typename T>
void moe_permute(const T* x, const int* ids, T* out, int* offsets, int* rows_of, int* work, int tokens, int experts,
                 int top_k, int hidden, cudaStream_t stream) {
    // TODO: launch them. Without pairs, write zeros to offsets and nothing else.
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
