// Flash attention for f16 and bf16. Weights are rounded to the type of the values, as a tensor core would need them.
//
//   q, out: [batch, heads, query_len, DIM]      k, v: [batch, heads, key_len, DIM]      DIM: 32 or 64
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/softmax.cuh"
#include "llmk/tile.cuh"

constexpr int kQueries = 64;  // queries per block, one thread each
constexpr int kKeys = 32;     // keys per tile

template <typename T, int DIM>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, float scale,
                       bool causal) {
    __shared__ T k_tile[kKeys][DIM];
    __shared__ T v_tile[kKeys][DIM];

    const int first_query = blockIdx.x * kQueries;
    const int query = first_query + threadIdx.x;
    const size_t head = blockIdx.y;
    q += (head * query_len + query) * DIM;
    out += (head * query_len + query) * DIM;

    float q_row[DIM], o[DIM] = {};
    for (int d = 0; d < DIM; ++d) q_row[d] = query < query_len ? static_cast<float>(q[d]) * scale : 0.0f;
    float m = -INFINITY;  // the largest score so far
    float l = 0;          // the sum of exp(score - m) so far; o is the sum of exp(score - m) * v

    const int visible = causal ? query + key_len - query_len + 1 : key_len;  // this query sees keys 0 ... visible - 1
    const int block_visible = causal ? min(first_query + kQueries, query_len) + key_len - query_len : key_len;
    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();  // all threads have used the previous tile
        const size_t tile = (head * key_len + first_key) * DIM;
        llmk::load_keys_and_values<DIM, kQueries>(k_tile, v_tile, k + tile, v + tile, key_len - first_key);
        __syncthreads();  // the tile is complete

        float s[kKeys];
        T p[kKeys];  // the weights, as a tensor core takes them
        float new_m = m;
        for (int j = 0; j < kKeys; ++j) {
            float sum = 0;
            for (int d = 0; d < DIM; ++d) sum += q_row[d] * static_cast<float>(k_tile[j][d]);
            s[j] = first_key + j < visible ? sum : -INFINITY;
            new_m = fmaxf(new_m, s[j]);
        }
        const float base = llmk::finite_max_or_zero(new_m);
        for (int j = 0; j < kKeys; ++j) p[j] = static_cast<T>(expf(s[j]));
        const float shrink = expf(-base);  // exp(score) * exp(-base) = exp(score - base)

        const float correction = expf(m - base);  // the sums so far used the old maximum
        m = new_m;
        l *= correction;
        for (int d = 0; d < DIM; ++d) o[d] *= correction;
        for (int j = 0; j < kKeys; ++j) {
            const float weight = static_cast<float>(p[j]) * shrink;
            l += weight;
            for (int d = 0; d < DIM; ++d) o[d] += weight * static_cast<float>(v_tile[j][d]);
        }
    }

    if (query >= query_len) return;
    const float inverse = llmk::reciprocal_or_zero(l);
    for (int d = 0; d < DIM; ++d) out[d] = static_cast<T>(o[d] * inverse);
}

template <typename T>
void half_flash_attention_debug(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len,
                                int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    const auto kernel = head_dim == 32 ? attend<T, 32> : attend<T, 64>;
    kernel<<<grid, kQueries, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}

extern "C" void half_flash_attention_debug_f16(const __half* q, const __half* k, const __half* v, __half* out,
                                               int batch, int heads, int query_len, int key_len, int head_dim,
                                               float scale, bool causal, cudaStream_t stream) {
    half_flash_attention_debug(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}

extern "C" void half_flash_attention_debug_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                                __nv_bfloat16* out, int batch, int heads, int query_len, int key_len,
                                                int head_dim, float scale, bool causal, cudaStream_t stream) {
    half_flash_attention_debug(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}
