// A different design: one block of threads per query, a thread for each column. A block has at least a warp of threads.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int heads_in_all, int query_len, int key_len, int head_dim, float scale) {
    __shared__ float parts[2][4];  // two buffers: while some warps read one key's sums, others may write the next key's
    const long long id = blockIdx.x;
    const long long head = id / query_len;
    const int query = static_cast<int>(id % query_len), column = threadIdx.x;
    const bool exists = column < head_dim;
    const float q_column = exists ? q[id * head_dim + column] : 0.0f;
    k += head * key_len * head_dim + column;
    v += head * key_len * head_dim + column;
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
    for (int e = offsets[query]; e < offsets[query + 1]; ++e) {
        if (indices[e] >= 0 && indices[e] < key_len) visit(indices[e]);
    }
    if (exists) out[id * head_dim + column] = l > 0 ? o / l : 0.0f;
}

extern "C" void csr_attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                              float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                              cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0) return;
    attend<<<static_cast<unsigned>(rows), max(head_dim, 32), 0, stream>>>(q, k, v, offsets, indices, out, batch * heads,
                                                                          query_len, key_len, head_dim, scale);
}
