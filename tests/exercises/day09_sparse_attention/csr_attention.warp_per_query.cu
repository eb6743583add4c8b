// A different design: one warp per query. Its lanes share head_dim and process one key after the other.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int heads_in_all, int query_len, int key_len, int head_dim, float scale) {
    const long long id = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (id >= static_cast<long long>(heads_in_all) * query_len) return;
    const long long head = id / query_len;
    const int query = static_cast<int>(id % query_len), lane = threadIdx.x % 32;
    q += id * head_dim + lane;
    out += id * head_dim + lane;
    k += head * key_len * head_dim + lane;
    v += head * key_len * head_dim + lane;
    float m = -INFINITY, l = 0, o[4] = {}, q_lane[4];
    for (int c = 0; c * 32 + lane < head_dim; ++c) q_lane[c] = q[c * 32];
    auto visit = [&](int key) {
        float s = 0;
        for (int c = 0; c * 32 + lane < head_dim; ++c)
            s += q_lane[c] * k[static_cast<long long>(key) * head_dim + c * 32];
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        s *= scale;
        const float new_m = fmaxf(m, s), correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
        for (int c = 0; c * 32 + lane < head_dim; ++c) {
            o[c] = o[c] * correction + p * v[static_cast<long long>(key) * head_dim + c * 32];
        }
    };
    for (int e = offsets[query]; e < offsets[query + 1]; ++e) {
        if (indices[e] >= 0 && indices[e] < key_len) visit(indices[e]);
    }
    for (int c = 0; c * 32 + lane < head_dim; ++c) out[c * 32] = l > 0 ? o[c] / l : 0.0f;
}

extern "C" void csr_attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                              float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                              cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>((rows + 3) / 4), 128, 0, stream>>>(q, k, v, offsets, indices, out, batch * heads,
                                                                      query_len, key_len, head_dim, scale);
}
