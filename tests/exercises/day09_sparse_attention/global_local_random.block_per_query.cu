// A different design: one block of threads per query, a thread for each column. A block has at least a warp of threads.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                       int heads_in_all, int len, int head_dim, int globals, int window, int randoms, float scale) {
    __shared__ float parts[2][4];  // two buffers: while some warps read one key's sums, others may write the next key's
    const long long id = blockIdx.x;
    const long long head = id / len;
    const int query = static_cast<int>(id % len), column = threadIdx.x;
    const bool exists = column < head_dim;
    const float q_column = exists ? q[id * head_dim + column] : 0.0f;
    k += head * len * head_dim + column;
    v += head * len * head_dim + column;
    float m = -INFINITY, l = 0, o = 0;
    int turn = 0;
    auto visit = [&](int key) {
        float s = exists ? q_column * k[static_cast<long long>(key) * head_dim] : 0.0f;
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        if (column % 32 == 0) parts[turn][column / 32] = s;
        __syncthreads();
        s = 0;
        for (int i = 0; i * 32 < head_dim; ++i) s += parts[turn][i];
        turn = 1 - turn;
        s *= scale;
        const float new_m = fmaxf(m, s), correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
        if (exists) o = o * correction + p * v[static_cast<long long>(key) * head_dim];
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
    if (exists) out[id * head_dim + column] = l > 0 ? o / l : 0.0f;
}

extern "C" void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                                    int batch, int heads, int len, int head_dim, int globals, int window, int randoms,
                                    float scale, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>(rows), max(head_dim, 32), 0, stream>>>(q, k, v, random_keys, out, batch * heads, len,
                                                                          head_dim, globals, window, randoms, scale);
}
