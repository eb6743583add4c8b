// Each thread computes one query. Its row of q and its sums are in registers, tiles of keys and values in shared
// memory. The softmax is updated for every key, not for every tile.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 64;
constexpr int kKeys = 16;

template <int DIM>
__global__ void attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len,
                       int head_dim, float scale, bool causal) {
    __shared__ float k_tile[kKeys][DIM];
    __shared__ float v_tile[kKeys][DIM];
    const int query = blockIdx.x * kQueries + threadIdx.x;
    const bool exists = query < query_len;
    const size_t head = blockIdx.y;
    float q_row[DIM], o[DIM];
    for (int d = 0; d < DIM; ++d) {
        q_row[d] = exists && d < head_dim ? q[(head * query_len + query) * head_dim + d] * scale : 0.0f;
        o[d] = 0;
    }
    float m = -INFINITY, l = 0;
    const int visible = !exists ? 0 : causal ? query + key_len - query_len + 1 : key_len;
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * DIM; i += kQueries) {
            const int row = i / DIM, d = i % DIM;
            const bool inside = first + row < key_len && d < head_dim;
            k_tile[row][d] = inside ? k[(head * key_len + first + row) * head_dim + d] : 0.0f;
            v_tile[row][d] = inside ? v[(head * key_len + first + row) * head_dim + d] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < kKeys && first + j < visible; ++j) {
            float s = 0;
            for (int d = 0; d < DIM; ++d) s += q_row[d] * k_tile[j][d];
            if (s > m) {
                const float correction = expf(m - s);
                m = s;
                l *= correction;
                for (int d = 0; d < DIM; ++d) o[d] *= correction;
            }
            const float p = expf(s - m);
            l += p;
            for (int d = 0; d < DIM; ++d) o[d] += p * v_tile[j][d];
        }
    }
    if (!exists) return;
    for (int d = 0; d < head_dim; ++d) out[(head * query_len + query) * head_dim + d] = l > 0 ? o[d] / l : 0.0f;
}

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    const auto kernel = head_dim <= 32 ? attend<32> : attend<128>;
    kernel<<<grid, kQueries, 0, stream>>>(q, k, v, out, query_len, key_len, head_dim, scale, causal);
}
