// The router of a mixture of experts, for f32, f16 and bf16: the top_k largest logits of each token, and their weights.
//
//   logits: [tokens, experts]     weights, ids: [tokens, top_k]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

// TODO: a kernel, template <typename T>: read the logits of a token once, take the largest one top_k times (among equal
// TODO: logits the lowest expert), and divide exp(logit - maximum) of the chosen experts by the sum over all experts,
// TODO: or over the chosen ones.

template <typename T>
void moe_router(const T* logits, float* weights, int* ids, int tokens, int experts, int top_k, bool softmax_first,
                bool normalize, cudaStream_t stream) {
    // TODO: launch it; with no tokens or top_k = 0 there is nothing to do.
}

extern "C" void moe_router_f32(const float* logits, float* weights, int* ids, int tokens, int experts, int top_k,
                               bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}

extern "C" void moe_router_f16(const __half* logits, float* weights, int* ids, int tokens, int experts, int top_k,
                               bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}

extern "C" void moe_router_bf16(const __nv_bfloat16* logits, float* weights, int* ids, int tokens, int experts,
                                int top_k, bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}
