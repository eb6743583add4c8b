// A different design: the kernel stores no scores, but updates the maximum, the sum and the weighted sum for every key.
// A warp computes 2 queries. 16 lanes share the columns of a query.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 64;
constexpr int kLanes = 16;
constexpr int kKeys = 32;
constexpr int kMaxEach = 64 / kLanes;

__global__ void __launch_bounds__(kQueries* kLanes)
    attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len, int head_dim,
           float scale, bool causal) {
    __shared__ float k_tile[kKeys * 64], v_tile[kKeys * 64];
    const int lane = threadIdx.x % kLanes;
    const int query = blockIdx.x * kQueries + threadIdx.x / kLanes;
    const size_t head = blockIdx.y;
    const int each = head_dim / kLanes;
    float q_part[kMaxEach], o[kMaxEach] = {}, m = -INFINITY, l = 0;
    for (int e = 0; e < each; ++e) {
        q_part[e] = query < query_len ? q[(head * query_len + query) * head_dim + e * kLanes + lane] * scale : 0.0f;
    }
    for (int first = 0; first < key_len; first += kKeys) {
        const int keys = min(kKeys, key_len - first);
        __syncthreads();
        for (int i = threadIdx.x; i < keys * head_dim; i += kQueries * kLanes) {
            k_tile[i] = k[(head * key_len + first) * head_dim + i];
            v_tile[i] = v[(head * key_len + first) * head_dim + i];
        }
        __syncthreads();
        for (int j = 0; j < keys; ++j) {
            float s = 0;
            for (int e = 0; e < each; ++e) s += q_part[e] * k_tile[j * head_dim + e * kLanes + lane];
            for (int bit = kLanes / 2; bit > 0; bit /= 2) s += __shfl_xor_sync(0xffffffff, s, bit);
            if (causal && first + j > query + key_len - query_len) s = -INFINITY;
            const float new_m = fmaxf(m, s);
            const float correction = m == -INFINITY ? 0.0f : expf(m - new_m);
            const float p = s == -INFINITY ? 0.0f : expf(s - new_m);
            m = new_m;
            l = l * correction + p;
            for (int e = 0; e < each; ++e) o[e] = o[e] * correction + p * v_tile[j * head_dim + e * kLanes + lane];
        }
    }
    if (query >= query_len) return;
    for (int e = 0; e < each; ++e) {
        out[(head * query_len + query) * head_dim + e * kLanes + lane] = l > 0 ? o[e] / l : 0.0f;
    }
}

extern "C" void flash_attention_debug(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                      int query_len, int key_len, int head_dim, float scale, bool causal,
                                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    attend<<<grid, kQueries * kLanes, 0, stream>>>(q, k, v, out, query_len, key_len, head_dim, scale, causal);
}
