// Sparse attention, f32, over any pattern: each query has its own list of keys, in CSR.
//
// A warp owns a query. Each of its four groups of 8 lanes takes every fourth key of the list and keeps its own maximum,
// sum and weighted sum, which are merged at the end (day 6). The 8 lanes of a group read a row of k or v together. A row
// of 4 or 8 columns needs one or two lanes, so the warp has 32 or 16 groups.
//
//   q, k, v, out: [batch, heads, query_len or key_len, DIM]     DIM: 4, 8, 32, 64 or 128
//   offsets: [query_len + 1]     indices: query i sees the keys indices[offsets[i]] ... indices[offsets[i + 1] - 1]
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/listed_keys.cuh"

constexpr int kWarps = 4;  // warps per block, one query each

// The keys that a query sees: `count` candidates; key(query, i) is the i-th, or -1 if it is not a key.
struct Pattern {
    const int* offsets;
    const int* indices;
    int key_len;

    __device__ int count(int query) const { return offsets[query + 1] - offsets[query]; }
    __device__ int key(int query, int i) const {
        const int index = indices[offsets[query] + i];
        return index >= 0 && index < key_len ? index : -1;
    }
};

template <int DIM>
__global__ void attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                       Pattern pattern, float* __restrict__ out, long long rows, int query_len, int key_len,
                       float scale) {
    llmk::attention_over_listed_keys<DIM>(q, k, v, pattern, out, rows, query_len, key_len, scale);
}

extern "C" void csr_attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                              float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                              cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    const Pattern pattern = {offsets, indices, key_len};
    const auto kernel = head_dim == 4    ? attend<4>
                        : head_dim == 8  ? attend<8>
                        : head_dim == 32 ? attend<32>
                        : head_dim == 64 ? attend<64>
                                         : attend<128>;
    kernel<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(q, k, v, pattern, out, rows,
                                                                                            query_len, key_len, scale);
}
