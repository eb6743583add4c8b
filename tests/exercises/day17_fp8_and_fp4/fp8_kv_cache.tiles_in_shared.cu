// A block computes one key/value head of one sequence. Shared memory holds 32 keys and values at a time, as floats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kTile = 32, kThreads = 128;

__device__ __forceinline__ float4 four(unsigned bits, float scale) {
    __nv_fp8x4_e4m3 packed;
    packed.__x = bits;
    const float4 value = static_cast<float4>(packed);
    return make_float4(value.x * scale, value.y * scale, value.z * scale, value.w * scale);
}

__global__ void __launch_bounds__(kThreads)
    step(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new, const int* lengths,
         unsigned char* k_cache, unsigned char* v_cache, float* k_scales, float* v_scales, __nv_bfloat16* out,
         int heads, int kv_heads, int head_dim, int max_length, float scale) {
    __shared__ float k_tile[kTile][129], v_tile[kTile][129], queries[8][128], scores[8][kTile], amax[2];
    const int group = heads / kv_heads, length = lengths[blockIdx.x];
    const size_t head = static_cast<size_t>(blockIdx.x) * kv_heads + blockIdx.y, own = head * max_length;
    const size_t first_query = static_cast<size_t>(blockIdx.x) * heads + blockIdx.y * group;
    if (threadIdx.x < 2) {
        const __nv_bfloat16* from = (threadIdx.x ? v_new : k_new) + head * head_dim;
        float most = 1e-10f;
        for (int d = 0; d < head_dim; ++d) most = fmaxf(most, fabsf(__bfloat162float(from[d])));
        amax[threadIdx.x] = most;
        (threadIdx.x ? v_scales : k_scales)[own + length] = most / 448.0f;
    }
    for (int i = threadIdx.x; i < group * head_dim; i += kThreads) {
        queries[i / head_dim][i % head_dim] = __bfloat162float(q[first_query * head_dim + i]) * scale;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * head_dim; i += kThreads) {
        const int which = i / head_dim, d = i % head_dim;
        const float x = __bfloat162float((which ? v_new : k_new)[head * head_dim + d]);
        (which ? v_cache : k_cache)[(own + length) * head_dim + d] =
            __nv_cvt_float_to_fp8(x * (448.0f / amax[which]), __NV_SATFINITE, __NV_E4M3);
    }
    __syncthreads();

    // A thread computes the elements threadIdx.x, threadIdx.x + 128, ... of the group's outputs. Every thread that
    // needs the maximum and sum of a query computes them itself.
    float result[8] = {}, most[8], total[8] = {};
    for (float& each : most) each = -INFINITY;
    for (int start = 0; start <= length; start += kTile) {
        const int count = min(kTile, length + 1 - start), words = head_dim / 4;
        for (int i = threadIdx.x; i < count * words; i += kThreads) {
            const int key = i / words, d = i % words * 4;
            const size_t place = own + start + key;
            const float4 a = four(*reinterpret_cast<unsigned*>(k_cache + place * head_dim + d), k_scales[place]);
            const float4 b = four(*reinterpret_cast<unsigned*>(v_cache + place * head_dim + d), v_scales[place]);
            k_tile[key][d] = a.x, k_tile[key][d + 1] = a.y, k_tile[key][d + 2] = a.z, k_tile[key][d + 3] = a.w;
            v_tile[key][d] = b.x, v_tile[key][d + 1] = b.y, v_tile[key][d + 2] = b.z, v_tile[key][d + 3] = b.w;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < group * kTile; i += kThreads) {
            float sum = i % kTile < count ? 0.0f : -INFINITY;
            for (int d = 0; d < head_dim && i % kTile < count; ++d) sum += queries[i / kTile][d] * k_tile[i % kTile][d];
            scores[i / kTile][i % kTile] = sum;
        }
        __syncthreads();
        for (int slot = 0; slot * kThreads + threadIdx.x < group * head_dim; ++slot) {
            const int u = (slot * kThreads + threadIdx.x) / head_dim, d = (slot * kThreads + threadIdx.x) % head_dim;
            float top = most[slot];
            for (int key = 0; key < count; ++key) top = fmaxf(top, scores[u][key]);
            const float kept = expf(most[slot] - top);
            result[slot] *= kept;
            total[slot] *= kept;
            for (int key = 0; key < count; ++key) {
                const float p = expf(scores[u][key] - top);
                total[slot] += p;
                result[slot] += p * v_tile[key][d];
            }
            most[slot] = top;
        }
        __syncthreads();
    }
    for (int slot = 0; slot * kThreads + threadIdx.x < group * head_dim; ++slot) {
        out[first_query * head_dim + slot * kThreads + threadIdx.x] = __float2bfloat16(result[slot] / total[slot]);
    }
}

extern "C" void fp8_kv_cache(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new,
                             const int* lengths, unsigned char* k_cache, unsigned char* v_cache, float* k_scales,
                             float* v_scales, float* parts, __nv_bfloat16* out, int batch, int heads, int kv_heads,
                             int head_dim, int max_length, int splits, float scale, cudaStream_t stream) {
    if (batch == 0) return;
    step<<<dim3(batch, kv_heads), kThreads, 0, stream>>>(q, k_new, v_new, lengths, k_cache, v_cache, k_scales, v_scales,
                                                         out, heads, kv_heads, head_dim, max_length, scale);
}
