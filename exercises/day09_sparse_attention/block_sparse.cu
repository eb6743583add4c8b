// Block-sparse attention, f32: each block of queries sees the blocks of keys that a CSR list names.
//
//   q, out: [batch, heads, query_len, DIM]     k, v: [batch, heads, key_len, DIM]     DIM: 4, 8, 32 or 64
//   offsets: [ceil(query_len / block) + 1]
//   indices: the key blocks of query block b are entries offsets[b] ... offsets[b + 1] - 1
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel whose block of threads owns a block of queries, and walks over its list of blocks of keys.

extern "C" void block_sparse(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                             float* out, int batch, int heads, int query_len, int key_len, int head_dim, int block,
                             bool causal, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + block - 1) / block, batch * heads);
    // TODO: launch it.
}
