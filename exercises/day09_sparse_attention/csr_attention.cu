// Sparse attention, f32, over any pattern: each query has its own list of keys, in CSR.
//
//   q, k, v, out: [batch, heads, query_len or key_len, DIM]     DIM: 4, 8, 32, 64 or 128
//   offsets: [query_len + 1]     indices: query i sees the keys indices[offsets[i]] ... indices[offsets[i + 1] - 1]
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel that visits the keys that a query sees, and no others.

extern "C" void csr_attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                              float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                              cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    // TODO: launch it.
}
