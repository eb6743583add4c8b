// Version 2, one pass: a thread walks over the keys of its query and keeps the online softmax in registers.
//
//   m   the largest score so far
//   l   the sum of exp(score - m) so far
//   o   the sum of exp(score - m) * v so far
//
// A larger score moves m. The sums so far are then too large by exp(new m - old m), and are rescaled. No score is
// ever stored. But every query reads every key and every value from global memory.
//
//   q, out: [heads, query_len, DIM]     k, v: [heads, key_len, DIM]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kThreads = 64;

template <int DIM>
__global__ void attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len,
                       float scale, bool causal) {
    const int query = blockIdx.x * kThreads + threadIdx.x;
    const size_t head = blockIdx.y;
    if (query >= query_len) return;
    q += (head * query_len + query) * DIM;
    out += (head * query_len + query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;

    float q_row[DIM], o[DIM];
    for (int d = 0; d < DIM; ++d) {
        q_row[d] = q[d] * scale;
        o[d] = 0;
    }
    float m = -INFINITY, l = 0;

    const int visible = causal ? query + key_len - query_len + 1 : key_len;  // keys 0 ... visible - 1
    for (int key = 0; key < visible; ++key) {
        float s = 0;
        for (int d = 0; d < DIM; ++d) s += q_row[d] * k[static_cast<size_t>(key) * DIM + d];

        const float new_m = fmaxf(m, s);
        const float correction = expf(m - new_m);  // 1 when the maximum stays; 0 at the first key, where m is -infinity
        const float p = expf(s - new_m);
        l = l * correction + p;
        for (int d = 0; d < DIM; ++d) o[d] = o[d] * correction + p * v[static_cast<size_t>(key) * DIM + d];
        m = new_m;
    }
    for (int d = 0; d < DIM; ++d) out[d] = l > 0 ? o[d] / l : 0.0f;  // a query that sees no key gives zeros
}

extern "C" void attention(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                          int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kThreads - 1) / kThreads, heads);
    const auto kernel = head_dim == 32 ? attend<32> : attend<64>;
    kernel<<<grid, kThreads, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}
