// Each thread quantizes eight numbers. Each warp updates amax with an atomic maximum of the float's bits as an unsigned
// int.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void start(const float* history, float* scale, float* amax, int steps) {
    float most = 1e-10f;
    for (int i = threadIdx.x; i < steps; i += 32) most = fmaxf(most, history[i]);
    const unsigned all = __reduce_max_sync(0xffffffff, __float_as_uint(most));
    if (threadIdx.x == 0) {
        *scale = __uint_as_float(all) / 448.0f;
        *amax = 0.0f;
    }
}

__global__ void eight_a_thread(const uint4* x, const float* history, uint2* q, float* amax, long long pieces,
                               int steps) {
    float most = 1e-10f;
    for (int i = threadIdx.x % 32; i < steps; i += 32) most = fmaxf(most, history[i]);
    const float factor = 448.0f / __uint_as_float(__reduce_max_sync(0xffffffff, __float_as_uint(most)));
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    unsigned largest = 0;
    if (i < pieces) {
        union {
            uint4 vector;
            __nv_bfloat162 pair[4];
        } own = {x[i]};
        __nv_fp8x2_e4m3 out[4];
        for (int p = 0; p < 4; ++p) {
            const float2 value = __bfloat1622float2(own.pair[p]);
            out[p] = __nv_fp8x2_e4m3(make_float2(value.x * factor, value.y * factor));
            if (isfinite(value.x)) largest = max(largest, __float_as_uint(fabsf(value.x)));
            if (isfinite(value.y)) largest = max(largest, __float_as_uint(fabsf(value.y)));
        }
        q[i] = make_uint2(out[0].__x | out[1].__x << 16, out[2].__x | out[3].__x << 16);
    }
    largest = __reduce_max_sync(0xffffffff, largest);
    if (threadIdx.x % 32 == 0 && largest > 0) atomicMax(reinterpret_cast<unsigned*>(amax), largest);
}

extern "C" void fp8_delayed_scaling(const __nv_bfloat16* x, const float* history, unsigned char* q, float* scale,
                                    float* amax, long long n, int steps, cudaStream_t stream) {
    start<<<1, 32, 0, stream>>>(history, scale, amax, steps);
    if (n == 0) return;
    eight_a_thread<<<(n / 8 + 127) / 128, 128, 0, stream>>>(reinterpret_cast<const uint4*>(x), history,
                                                            reinterpret_cast<uint2*>(q), amax, n / 8, steps);
}
