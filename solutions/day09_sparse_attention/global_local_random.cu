// Attention over global, neighboring and random keys, f32.
//
// A warp owns a query. Each of its four groups of 8 lanes takes every fourth of its keys and keeps its own maximum,
// sum and weighted sum, which are merged at the end (day 6). The 8 lanes of a group read a row of k or v together. A row
// of 4 or 8 columns needs one or two lanes, so the warp has 32 or 16 groups.
//
//   q, k, v, out: [batch, heads, len, DIM]     DIM: 4, 8, 32, 64 or 128
//   random_keys: [len, randoms]
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/listed_keys.cuh"

constexpr int kWarps = 4;  // warps per block, one query each

// The keys that a query sees: `count` candidates; key(query, i) is the i-th, or -1 if an earlier candidate is the same
// key.
struct Pattern {
    const int* random_keys;
    int len, globals, window, randoms;

    // The range of neighbors; for a global query, all keys.
    __device__ int from(int query) const { return query < globals ? 0 : max(0, query - window); }
    __device__ int to(int query) const { return query < globals ? len : min(len, query + window + 1); }

    __device__ int count(int query) const { return to(query) - from(query) + min(globals, len) + randoms; }
    __device__ int key(int query, int i) const {
        const int begin = from(query), end = to(query);
        if (i < end - begin) return begin + i;
        i -= end - begin;
        if (i < min(globals, len)) return i >= begin && i < end ? -1 : i;
        i -= min(globals, len);
        const int* mine = random_keys + static_cast<long long>(query) * randoms;
        const int key = mine[i];
        if (key < globals || key >= len || (key >= begin && key < end)) return -1;
        for (int j = 0; j < i; ++j) {
            if (mine[j] == key) return -1;
        }
        return key < 0 ? -1 : key;
    }
};

template <int DIM>
__global__ void attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                       Pattern pattern, float* __restrict__ out, long long rows, int query_len, int key_len,
                       float scale) {
    llmk::attention_over_listed_keys<DIM>(q, k, v, pattern, out, rows, query_len, key_len, scale);
}

extern "C" void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                                    int batch, int heads, int len, int head_dim, int globals, int window, int randoms,
                                    float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * len;
    if (rows == 0) return;
    const Pattern pattern = {random_keys, len, globals, window, randoms};
    const auto kernel = head_dim == 4    ? attend<4>
                        : head_dim == 8  ? attend<8>
                        : head_dim == 32 ? attend<32>
                        : head_dim == 64 ? attend<64>
                                         : attend<128>;
    kernel<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(q, k, v, pattern, out, rows,
                                                                                            len, len, scale);
}
