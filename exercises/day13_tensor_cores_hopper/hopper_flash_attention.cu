// Flash attention on Hopper: TMA loads tiles, and two or three warpgroups multiply with wgmma.
//
// Sequences are concatenated: sequence b has the tokens query_starts[b] to query_starts[b + 1] - 1 of q and out, and
// key_starts[b] to key_starts[b + 1] - 1 of k and v. Causal: the last query sees all keys of its sequence.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
//   The heads of a token are contiguous. From token to token, q has a stride of q_stride elements, k and v of
//   kv_stride, and out of heads * head_dim.
//   taken: [1], a counter of the query tiles that blocks have taken
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel, template <typename T, int DIM>, with warp specialization:
// TODO:   - one thread loads q, and tiles of k and v, as far ahead as there are stages
// TODO:   - warpgroups with 64 queries each compute S = q k^T, with both operands in shared memory
// TODO:   - the online softmax, in registers: a row of S lies in four neighboring lanes
// TODO:   - O += P v, with P as operand A in registers, and v as it is stored, MN-major: its rows are k
// TODO:   - masks at the ends of sequences; rows of the next sequence are neither used nor written

template <typename T>
static void attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                      int* taken, int batch, int queries, int keys, int max_queries, int heads, int kv_heads,
                      int head_dim, long long q_stride, long long kv_stride, float scale, bool causal,
                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || queries == 0) return;
    if (keys == 0) k = v = q;  // a tensor map cannot have 0 rows; nothing is loaded from it
    // TODO: launch it for heads of 64, 128 and 256: TMA fills missing columns of a head with zeros.
}

extern "C" void hopper_flash_attention_f16(const __half* q, const __half* k, const __half* v, const int* query_starts,
                                           const int* key_starts, __half* out, int* taken, int batch, int queries,
                                           int keys, int max_queries, int heads, int kv_heads, int head_dim,
                                           long long q_stride, long long kv_stride, float scale, bool causal,
                                           cudaStream_t stream) {
    attention(q, k, v, query_starts, key_starts, out, taken, batch, queries, keys, max_queries, heads, kv_heads,
              head_dim, q_stride, kv_stride, scale, causal, stream);
}

extern "C" void hopper_flash_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                            const int* query_starts, const int* key_starts, __nv_bfloat16* out,
                                            int* taken, int batch, int queries, int keys, int max_queries, int heads,
                                            int kv_heads, int head_dim, long long q_stride, long long kv_stride,
                                            float scale, bool causal, cudaStream_t stream) {
    attention(q, k, v, query_starts, key_starts, out, taken, batch, queries, keys, max_queries, heads, kv_heads,
              head_dim, q_stride, kv_stride, scale, causal, stream);
}
