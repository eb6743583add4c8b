// Each thread computes one query. All threads of a warp read the same float4 of a key or value and use it for 4
// multiply-adds.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 128;
constexpr int kKeys = 32;

template <int DIM>
__global__ void __launch_bounds__(kQueries) attend(const float* q, const float* k, const float* v, float* out,
                                                   int query_len, int key_len, float scale, bool causal) {
    __shared__ float4 k_tile[kKeys * DIM / 4], v_tile[kKeys * DIM / 4];
    const int query = blockIdx.x * kQueries + threadIdx.x;
    const bool exists = query < query_len;
    const size_t head = blockIdx.y;
    const auto* q4 = reinterpret_cast<const float4*>(q) + (head * query_len + query) * (DIM / 4);
    const auto* k4 = reinterpret_cast<const float4*>(k) + head * key_len * (DIM / 4);
    const auto* v4 = reinterpret_cast<const float4*>(v) + head * key_len * (DIM / 4);
    float4 q_row[DIM / 4], o[DIM / 4];
    for (int c = 0; c < DIM / 4; ++c) {
        q_row[c] = exists ? q4[c] : make_float4(0, 0, 0, 0);
        o[c] = make_float4(0, 0, 0, 0);
    }
    float m = -INFINITY, l = 0;
    const int visible = !exists ? 0 : causal ? query + key_len - query_len + 1 : key_len;
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < min(kKeys, key_len - first) * DIM / 4; i += kQueries) {
            k_tile[i] = k4[first * (DIM / 4) + i];
            v_tile[i] = v4[first * (DIM / 4) + i];
        }
        __syncthreads();
        for (int j = 0; j < kKeys && first + j < visible; ++j) {
            float s = 0;
            for (int c = 0; c < DIM / 4; ++c) {
                const float4 key = k_tile[j * (DIM / 4) + c];
                s += q_row[c].x * key.x + q_row[c].y * key.y + q_row[c].z * key.z + q_row[c].w * key.w;
            }
            s *= scale;
            const float new_m = fmaxf(m, s), correction = expf(m - new_m), p = expf(s - new_m);
            m = new_m;
            l = l * correction + p;
            for (int c = 0; c < DIM / 4; ++c) {
                const float4 value = v_tile[j * (DIM / 4) + c];
                o[c].x = o[c].x * correction + p * value.x;
                o[c].y = o[c].y * correction + p * value.y;
                o[c].z = o[c].z * correction + p * value.z;
                o[c].w = o[c].w * correction + p * value.w;
            }
        }
    }
    if (!exists) return;
    const float inverse = l > 0 ? 1 / l : 0;
    auto* out4 = reinterpret_cast<float4*>(out) + (head * query_len + query) * (DIM / 4);
    for (int c = 0; c < DIM / 4; ++c) {
        out4[c] = make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}

extern "C" void flash_attention_tiles(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                      int query_len, int key_len, int head_dim, float scale, bool causal,
                                      cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    const auto kernel = head_dim == 32 ? attend<32> : attend<64>;
    kernel<<<grid, kQueries, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}
