// Another design: one thread per query, one key after the other.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                       int heads_in_all, int len, int head_dim, int globals, int window, int randoms, float scale) {
    const long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (id >= static_cast<long long>(heads_in_all) * len) return;
    const long long head = id / len;
    const int query = static_cast<int>(id % len);
    q += id * head_dim;
    out += id * head_dim;
    k += head * len * head_dim;
    v += head * len * head_dim;
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
    for (int d = 0; d < head_dim; ++d) out[d] = l > 0 ? o[d] / l : 0.0f;
}

extern "C" void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                                    int batch, int heads, int len, int head_dim, int globals, int window, int randoms,
                                    float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>((rows + 63) / 64), 64, 0, stream>>>(q, k, v, random_keys, out, batch * heads, len,
                                                                       head_dim, globals, window, randoms, scale);
}
