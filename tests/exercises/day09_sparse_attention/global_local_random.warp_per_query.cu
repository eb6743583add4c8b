// A different design: one warp per query. Its lanes share head_dim and process one key after the other.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                       int heads_in_all, int len, int head_dim, int globals, int window, int randoms, float scale) {
    const long long id = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (id >= static_cast<long long>(heads_in_all) * len) return;
    const long long head = id / len;
    const int query = static_cast<int>(id % len), lane = threadIdx.x % 32;
    q += id * head_dim + lane;
    out += id * head_dim + lane;
    k += head * len * head_dim + lane;
    v += head * len * head_dim + lane;
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
    const int from = query < globals ? globals : max(globals, query - window);
    const int to = query < globals ? len : min(len, query + window + 1);
    for (int key = 0; key < min(globals, len); ++key) visit(key);
    for (int key = from; key < to; ++key) visit(key);
    for (int r = 0; r < randoms; ++r) {
        const int key = random_keys[static_cast<long long>(query) * randoms + r];
        bool seen = key < 0 || key >= len || key < globals || (key >= from && key < to);
        for (int s = 0; s < r; ++s) seen = seen || random_keys[static_cast<long long>(query) * randoms + s] == key;
        if (!seen) visit(key);
    }
    for (int c = 0; c * 32 + lane < head_dim; ++c) out[c * 32] = l > 0 ? o[c] / l : 0.0f;
}

extern "C" void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                                    int batch, int heads, int len, int head_dim, int globals, int window, int randoms,
                                    float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>((rows + 3) / 4), 128, 0, stream>>>(q, k, v, random_keys, out, batch * heads, len,
                                                                      head_dim, globals, window, randoms, scale);
}
