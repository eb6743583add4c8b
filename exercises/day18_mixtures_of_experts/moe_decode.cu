// A mixture of experts for 1 to 64 tokens, in two kernels. Each chosen expert's weights are read once, by whichever warp
// has their tile, for all tokens that chose it, so the time is that of reading these weights.
//
//   x, out: [tokens, hidden]     ids, weights: [tokens, top_k]     gate_up: [experts, 2 inter, hidden], gate above up
//   down: [experts, hidden, inter]     middle: [tokens * top_k, inter], the workspace
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"

// TODO: let every block find the experts that at least one token chose, and the pairs of each of them.
// TODO: a kernel for silu(gate) * up of all pairs, which reads the rows of a chosen expert once for all of its pairs.
// TODO: a kernel whose tiles are features of out: add up the weighted results of all chosen experts, without atomics.

template <typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    if (tokens == 0) return;
    // TODO: launch them.
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
