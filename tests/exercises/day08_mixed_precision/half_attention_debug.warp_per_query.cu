// A different design: one warp per query. Each lane computes the score of one of 32 keys; shuffles compute maximum and
// sum.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

__device__ __forceinline__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ __forceinline__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, int head_dim,
                       float scale, bool causal) {
    const int query = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (query >= query_len) return;
    const size_t head = blockIdx.y;
    q += (head * query_len + query) * head_dim;
    out += (head * query_len + query) * head_dim;
    k += head * key_len * head_dim;
    v += head * key_len * head_dim;
    const int visible = causal ? query + key_len - query_len + 1 : key_len;
    float m = -INFINITY, l = 0, o[2] = {};  // this lane's columns of out: lane and lane + 32
    for (int first = 0; first < visible; first += 32) {
        float s = -INFINITY;
        if (first + lane < visible) {
            const T* key = k + static_cast<size_t>(first + lane) * head_dim;
            float sum = 0;
            for (int d = 0; d < head_dim; ++d) sum += static_cast<float>(q[d]) * static_cast<float>(key[d]);
            s = sum * scale;
        }
        float new_m = fmaxf(m, s);
        for (int step = 16; step > 0; step /= 2) new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, step));
        const float correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
        for (int c = 0; c < 2; ++c) o[c] *= correction;
        for (int j = 0; j < 32 && first + j < visible; ++j) {
            const float weight = __shfl_sync(0xffffffff, p, j);
            for (int c = 0; c * 32 < head_dim; ++c) {
                o[c] += weight * static_cast<float>(v[static_cast<size_t>(first + j) * head_dim + c * 32 + lane]);
            }
        }
    }
    for (int step = 16; step > 0; step /= 2) l += __shfl_xor_sync(0xffffffff, l, step);
    for (int c = 0; c * 32 < head_dim; ++c) put(out + c * 32 + lane, l > 0 ? o[c] / l : 0.0f);
}

template <typename T>
void half_attention_debug(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                          int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    attend<<<dim3((query_len + 3) / 4, batch * heads), 128, 0, stream>>>(q, k, v, out, query_len, key_len, head_dim,
                                                                         scale, causal);
}
