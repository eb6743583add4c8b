// A different design: one thread per query, which processes one key after the other.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int heads_in_all, int query_len, int key_len, int head_dim, float scale) {
    const long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (id >= static_cast<long long>(heads_in_all) * query_len) return;
    const long long head = id / query_len;
    const int query = static_cast<int>(id % query_len);
    q += id * head_dim;
    out += id * head_dim;
    k += head * key_len * head_dim;
    v += head * key_len * head_dim;
    float m = -INFINITY, l = 0, o[128] = {};
    auto visit = [&](int key) {
        float s = 0;
        for (int d = 0; d < head_dim; ++d) s += q[d] * k[static_cast<long long>(key) * head_dim + d];
        s *= scale;
        const float new_m = fmaxf(m, s), correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
        for (int d = 0; d < head_dim; ++d) {
            o[d] = o[d] * correction + p * v[static_cast<long long>(key) * head_dim + d];
        }
    };
    for (int e = offsets[query]; e < offsets[query + 1]; ++e) {
        if (indices[e] >= 0 && indices[e] < key_len) visit(indices[e]);
    }
    for (int d = 0; d < head_dim; ++d) out[d] = l > 0 ? o[d] / l : 0.0f;
}

extern "C" void csr_attention_debug(const float* q, const float* k, const float* v, const int* offsets,
                                    const int* indices, float* out, int batch, int heads, int query_len, int key_len,
                                    int head_dim, float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>((rows + 63) / 64), 64, 0, stream>>>(q, k, v, offsets, indices, out, batch * heads,
                                                                       query_len, key_len, head_dim, scale);
}
