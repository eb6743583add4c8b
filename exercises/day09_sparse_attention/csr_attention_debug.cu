// Sparse attention, f32, over lists of keys in CSR. A warp owns a query and takes 32 keys at a time, one per lane.
//
//   q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]     head_dim: 32 or 64
//   offsets: [query_len + 1]     indices: query i sees the keys indices[offsets[i]] ... indices[offsets[i + 1] - 1]
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"

constexpr int kWarps = 4;  // warps per block, one query each

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, long long rows, int query_len, int key_len, int head_dim, float scale) {
    const long long id = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (id >= rows) return;
    const int query = static_cast<int>(id % query_len), lane = threadIdx.x % 32;
    q += id * head_dim;
    out += id * head_dim;
    k += id / query_len * key_len * head_dim;
    v += id / query_len * key_len * head_dim;

    float m = -INFINITY, l = 0;  // m: the largest score so far; l: the sum of exp(score - m)
    float o[2] = {};             // columns lane and lane + 32 of the weighted sum of values
    const int begin = offsets[query], end = offsets[query + 1];
    for (int first = begin; first < end; first += 32) {
        const int key = first + lane < end ? indices[first + lane] : -1;
        const bool valid = key >= 0 && key < key_len;
        float s = -INFINITY;
        if (valid) {
            float sum = 0;
            for (int d = 0; d < head_dim; ++d) sum += q[d] * k[static_cast<long long>(key) * head_dim + d];
            s = sum * scale;
        }
        const float new_m = llmk::warp_max(fmaxf(m, s));
        const float base = llmk::finite_max_or_zero(new_m);
        const float correction = expf(m - base);
        const float p = expf(s - base);
        const float sum = llmk::warp_sum(p);
        m = new_m;
        l += sum;
        for (int c = 0; c * 32 < head_dim; ++c) o[c] *= correction;
        for (int j = 0; j < 32; ++j) {
            const int other = __shfl_sync(0xffffffff, valid ? key : -1, j);
            const float weight = __shfl_sync(0xffffffff, p, j);
            if (other < 0) continue;
            for (int c = 0; c * 32 < head_dim; ++c) {
                o[c] += weight * v[static_cast<long long>(other) * head_dim + c * 32 + lane];
            }
        }
    }
    for (int c = 0; c * 32 < head_dim; ++c) out[c * 32 + lane] = l > 0 ? o[c] / l : 0.0f;
}

extern "C" void csr_attention_debug(const float* q, const float* k, const float* v, const int* offsets,
                                    const int* indices, float* out, int batch, int heads, int query_len, int key_len,
                                    int head_dim, float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(
        q, k, v, offsets, indices, out, rows, query_len, key_len, head_dim, scale);
}
