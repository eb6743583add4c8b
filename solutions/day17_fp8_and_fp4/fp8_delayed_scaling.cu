// Quantize to e4m3 with the scale of earlier steps, and find this step's largest number in the same pass.
//
//   x: [n]     history: [steps], the amax of each earlier step     q: [n], patterns of e4m3     scale, amax: [1]
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr float kLargest = 448.0f;

__global__ void __launch_bounds__(kThreads)
    quantize(const __nv_bfloat16* __restrict__ x, const float* __restrict__ history, unsigned char* __restrict__ q,
             float* __restrict__ scale, float* amax, long long n, int steps) {
    __shared__ float warp_amax[kThreads / 32];
    float earlier = 1e-10f;
    for (int step = 0; step < steps; ++step) earlier = fmaxf(earlier, history[step]);
    const float factor = kLargest / earlier;

    float own_amax = 0.0f;
    const long long stride = static_cast<long long>(gridDim.x) * kThreads * 8;
    for (long long i = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * 8; i < n; i += stride) {
        const uint4 words = *reinterpret_cast<const uint4*>(x + i);
        const unsigned word[4] = {words.x, words.y, words.z, words.w};
        unsigned out[2] = {};
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const float value = __uint_as_float(j % 2 == 0 ? word[j / 2] << 16 : word[j / 2] & 0xffff0000);
            if (isfinite(value)) own_amax = fmaxf(own_amax, fabsf(value));
            const unsigned bits = __nv_cvt_float_to_fp8(value * factor, __NV_SATFINITE, __NV_E4M3);
            out[j / 4] |= bits << (8 * (j % 4));
        }
        *reinterpret_cast<uint2*>(q + i) = make_uint2(out[0], out[1]);
    }

    for (int offset = 16; offset > 0; offset /= 2) {
        own_amax = fmaxf(own_amax, __shfl_xor_sync(0xffffffff, own_amax, offset));
    }
    if (threadIdx.x % 32 == 0) warp_amax[threadIdx.x / 32] = own_amax;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < kThreads / 32; ++warp) own_amax = fmaxf(own_amax, warp_amax[warp]);
        // Nonnegative floats have the same order as their bits as ints, so atomicMax of ints finds the largest.
        atomicMax(reinterpret_cast<int*>(amax), __float_as_int(own_amax));
        if (blockIdx.x == 0) *scale = earlier / kLargest;
    }
}

extern "C" void fp8_delayed_scaling(const __nv_bfloat16* x, const float* history, unsigned char* q, float* scale,
                                    float* amax, long long n, int steps, cudaStream_t stream) {
    if (cudaMemsetAsync(amax, 0, sizeof(float), stream) != cudaSuccess) return;
    const long long blocks = (n / 8 + kThreads - 1) / kThreads;
    quantize<<<static_cast<int>(min(max(blocks, 1LL), 1024LL)), kThreads, 0, stream>>>(x, history, q, scale, amax, n,
                                                                                       steps);
}
