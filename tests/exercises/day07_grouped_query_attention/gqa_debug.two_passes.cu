// Grouped-query attention in f32. A warp computes one query: a first pass finds the largest score, a second one the
// sums.
//
//   q, out: [batch, heads, query_len, head_dim]      k, v: [batch, kv_heads, key_len, head_dim]
//
// Lane i holds the columns i, i + 32, i + 64 and i + 96 of the query and of its result.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kWarps = 4;  // warps in a block
constexpr int kColumns = 4;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ float warp_sum(float x) {
    for (int reach = 16; reach > 0; reach /= 2) x += __shfl_xor_sync(kAllLanes, x, reach);
    return x;
}

__global__ void attend(const float* q, const float* k, const float* v, float* out, int batch, int heads, int kv_heads,
                       int query_len, int key_len, int head_dim, float scale, bool causal) {
    const int lane = threadIdx.x % 32;
    const long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (row >= static_cast<long long>(batch) * heads * query_len) return;
    const int query = row % query_len;
    const int head = row / query_len % heads;
    const int b = row / query_len / heads;
    const int kv_head = head / (heads / kv_heads);

    const float* q_row = q + row * head_dim;
    const size_t first_key = (static_cast<size_t>(b) * kv_heads + kv_head) * key_len;
    const int visible = causal ? query + key_len - query_len + 1 : key_len;  // this query sees keys 0 ... visible - 1

    auto score_of = [&](int key) {
        const float* k_row = k + (first_key + key) * head_dim;
        float sum = 0;
        for (int d = lane; d < head_dim; d += 32) sum += q_row[d] * k_row[d];
        return warp_sum(sum) * scale;
    };
    float m = -INFINITY;
    for (int key = 0; key < visible; ++key) m = fmaxf(m, score_of(key));
    float l = 0;
    float o[kColumns] = {};
    for (int key = 0; key < visible; ++key) {
        const float* v_row = v + (first_key + key) * head_dim;
        const float weight = expf(score_of(key) - m);
        l += weight;
        for (int c = 0; c < kColumns; ++c) {
            const int d = lane + 32 * c;
            if (d < head_dim) o[c] += weight * v_row[d];
        }
    }

    const float inverse = l > 0 ? 1 / l : 0.0f;  // a query that sees no key returns zeros
    float* out_row = out + ((static_cast<size_t>(b) * heads + head) * query_len + query) * head_dim;
    for (int c = 0; c < kColumns; ++c) {
        const int d = lane + 32 * c;
        if (d < head_dim) out_row[d] = o[c] * inverse;
    }
}
