// Prefill with one thread for each row, which is one query of one head of the group. Tiles of keys have the dtype of k.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kRows = 64;
constexpr int kKeys = 16;

template <typename T, int DIM>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int heads, int kv_heads, int query_len, int key_len,
                       int head_dim, float scale, bool causal) {
    __shared__ T k_tile[kKeys][DIM];
    __shared__ T v_tile[kKeys][DIM];
    const int group = heads / kv_heads;
    const long long rows = static_cast<long long>(query_len) * group;
    const long long row = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x;
    const size_t kv_head = blockIdx.y;  // counted over all sequences of the batch
    const bool exists = row < rows;
    const int query = row / group;
    const size_t place = ((kv_head * group + row % group) * query_len + query) * head_dim;

    float q_row[DIM] = {}, o[DIM] = {};
    if (exists) {
        for (int d = 0; d < head_dim; d += 16 / sizeof(T)) {
            const uint4 bits = *reinterpret_cast<const uint4*>(q + place + d);
            const T* elements = reinterpret_cast<const T*>(&bits);
            for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) {
                q_row[d + j] = static_cast<float>(elements[j]) * scale;
            }
        }
    }
    float m = -INFINITY, l = 0;
    const int visible = causal ? query + key_len - query_len + 1 : key_len;
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * head_dim; i += kRows) {
            const int key = i / head_dim, d = i % head_dim;
            const size_t at = (kv_head * key_len + first + key) * head_dim + d;
            const bool there = first + key < key_len;
            k_tile[key][d] = there ? k[at] : static_cast<T>(0.0f);
            v_tile[key][d] = there ? v[at] : static_cast<T>(0.0f);
        }
        __syncthreads();
        for (int key = 0; key < kKeys; ++key) {
            if (!exists || first + key >= visible || first + key >= key_len) break;
            float score = 0;
            for (int d = 0; d < head_dim; ++d) score += q_row[d] * static_cast<float>(k_tile[key][d]);
            const float new_m = fmaxf(m, score);
            const float correction = expf(m - new_m), p = expf(score - new_m);
            m = new_m;
            l = l * correction + p;
            for (int d = 0; d < head_dim; ++d) o[d] = o[d] * correction + p * static_cast<float>(v_tile[key][d]);
        }
    }
    if (!exists) return;
    for (int d = 0; d < head_dim; d += 16 / sizeof(T)) {
        uint4 bits;
        T* elements = reinterpret_cast<T*>(&bits);
        for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j)
            elements[j] = static_cast<T>(l > 0 ? o[d + j] / l : 0.0f);
        *reinterpret_cast<uint4*>(out + place + d) = bits;
    }
}

template <typename T>
void gqa_prefill(const T* q, const T* k, const T* v, T* out, int batch, int heads, int kv_heads, int query_len,
                 int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const long long rows = static_cast<long long>(query_len) * (heads / kv_heads);
    const dim3 grid((rows + kRows - 1) / kRows, batch * kv_heads);
    const auto kernel = head_dim <= 64 ? attend<T, 64> : attend<T, 128>;
    kernel<<<grid, kRows, 0, stream>>>(q, k, v, out, heads, kv_heads, query_len, key_len, head_dim, scale, causal);
}
