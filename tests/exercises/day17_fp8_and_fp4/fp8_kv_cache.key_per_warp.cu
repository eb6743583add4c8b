// Two kernels. The first one appends the new token. In the second one a warp processes one key at a time for all query
// heads of a group. Keys are not split over blocks.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void append_token(const __nv_bfloat16* k_new, const __nv_bfloat16* v_new, const int* lengths,
                             unsigned char* k_cache, unsigned char* v_cache, float* k_scales, float* v_scales,
                             int head_dim, int max_length) {
    const bool is_value = threadIdx.y == 1;
    const size_t head = static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x;
    const size_t place = head * max_length + lengths[blockIdx.y];
    const __nv_bfloat16* from = (is_value ? v_new : k_new) + head * head_dim;
    unsigned char* to = (is_value ? v_cache : k_cache) + place * head_dim;
    float amax = 1e-10f;
    for (int d = threadIdx.x; d < head_dim; d += 32) amax = fmaxf(amax, fabsf(__bfloat162float(from[d])));
    amax = __uint_as_float(__reduce_max_sync(0xffffffff, __float_as_uint(amax)));
    for (int d = threadIdx.x; d < head_dim; d += 32) {
        to[d] = __nv_fp8_e4m3(__bfloat162float(from[d]) * (448.0f / amax)).__x;
    }
    if (threadIdx.x == 0) (is_value ? v_scales : k_scales)[place] = amax / 448.0f;
}

__device__ __forceinline__ float number(unsigned char bits) {
    __nv_fp8_e4m3 value;
    value.__x = bits;
    return static_cast<float>(value);
}

// A block computes `share` query heads, which use the same keys.
__global__ void __launch_bounds__(128)
    attend(const __nv_bfloat16* q, const int* lengths, const unsigned char* k_cache, const unsigned char* v_cache,
           const float* k_scales, const float* v_scales, __nv_bfloat16* out, int heads, int kv_heads, int head_dim,
           int max_length, int share, float scale) {
    __shared__ float all[4][8][128], maxima[4][8], weights[4][8];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, each = (head_dim + 31) / 32;
    const bool exists = lane * each < head_dim;  // this lane's columns
    const int first_head = blockIdx.x * share, kv_head = first_head / (heads / kv_heads);
    const size_t own = (static_cast<size_t>(blockIdx.y) * kv_heads + kv_head) * max_length;
    float query[8][4], sum[8][4] = {}, most[8], weight[8] = {};
    for (int u = 0; u < share; ++u) {
        most[u] = -INFINITY;
        for (int i = 0; i < each; ++i) {
            const size_t head = static_cast<size_t>(blockIdx.y) * heads + first_head + u;
            query[u][i] = exists ? __bfloat162float(q[head * head_dim + lane * each + i]) : 0.0f;
        }
    }
    for (int key = warp; key <= lengths[blockIdx.y]; key += 4) {
        float k[4] = {}, v[4] = {};
        for (int i = 0; exists && i < each; ++i) {
            k[i] = number(k_cache[(own + key) * head_dim + lane * each + i]) * k_scales[own + key];
            v[i] = number(v_cache[(own + key) * head_dim + lane * each + i]) * v_scales[own + key];
        }
        for (int u = 0; u < share; ++u) {
            float score = 0.0f;
            for (int i = 0; i < each; ++i) score += query[u][i] * k[i];
            for (int offset = 16; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffff, score, offset);
            const float next = fmaxf(most[u], score * scale), kept = expf(most[u] - next);
            const float probability = expf(score * scale - next);
            most[u] = next;
            weight[u] = weight[u] * kept + probability;
            for (int i = 0; i < each; ++i) sum[u][i] = sum[u][i] * kept + probability * v[i];
        }
    }
    for (int u = 0; u < share; ++u) {
        for (int i = 0; i < each; ++i) all[warp][u][lane * each + i] = sum[u][i];
        if (lane == 0) maxima[warp][u] = most[u];
        if (lane == 0) weights[warp][u] = weight[u];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < share * head_dim; i += 128) {
        const int u = i / head_dim, d = i % head_dim;
        const float top = fmaxf(fmaxf(maxima[0][u], maxima[1][u]), fmaxf(maxima[2][u], maxima[3][u]));
        float total = 0.0f, result = 0.0f;
        for (int w = 0; w < 4; ++w) {
            total += weights[w][u] * expf(maxima[w][u] - top);
            result += all[w][u][d] * expf(maxima[w][u] - top);
        }
        out[(static_cast<size_t>(blockIdx.y) * heads + first_head + u) * head_dim + d] =
            __float2bfloat16(result / total);
    }
}

extern "C" void fp8_kv_cache(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new,
                             const int* lengths, unsigned char* k_cache, unsigned char* v_cache, float* k_scales,
                             float* v_scales, float* parts, __nv_bfloat16* out, int batch, int heads, int kv_heads,
                             int head_dim, int max_length, int splits, float scale, cudaStream_t stream) {
    if (batch == 0) return;
    append_token<<<dim3(kv_heads, batch), dim3(32, 2), 0, stream>>>(k_new, v_new, lengths, k_cache, v_cache, k_scales,
                                                                    v_scales, head_dim, max_length);
    const int share = heads / kv_heads;
    attend<<<dim3(heads / share, batch), 128, 0, stream>>>(q, lengths, k_cache, v_cache, k_scales, v_scales, out, heads,
                                                           kv_heads, head_dim, max_length, share, scale);
}
