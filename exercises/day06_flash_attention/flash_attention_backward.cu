// Flash attention, backward, f32: dq, dk, dv from q, k, v, out, dout and the saved lse, in O(N) memory.
//
//   q, out, dout, dq: [batch, heads, query_len, head_dim]      k, v, dk, dv: [batch, heads, key_len, head_dim]
//   lse, delta:       [batch, heads, query_len]                lse = log(sum over keys of exp(scale * score))
//
//   P = exp(scale * Q K^T - lse)      dV = P^T dO      dP = dO V^T      delta = row sums of dO * O
//   dS = P * (dP - delta)             dQ = scale * dS K                 dK = scale * dS^T Q
//
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel for delta: one warp per query.
// TODO: a kernel for dk and dv: a block owns a tile of keys and walks over the queries that see any of them.
// TODO: a kernel for dq: a block owns a tile of queries and walks over the keys that any of them sees.

extern "C" void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                                         const float* dout, const float* lse, float* delta, float* dq, float* dk,
                                         float* dv, int batch, int heads, int query_len, int key_len, int head_dim,
                                         float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch them one after another. query_len or key_len may be 0.
}
