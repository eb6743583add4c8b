// Kernels whose floating-point operations and active lanes can be counted by hand. The test finds lines by their
// comments.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void dot_kernel(const float* x, float* out, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
        sum += x[i] * x[i];  // one product and one sum per iteration
    }
    out[threadIdx.x] = sum;
}

extern "C" void dot(const float* x, float* out, int n, cudaStream_t stream) {
    dot_kernel<<<1, 64, 0, stream>>>(x, out, n);
}

extern "C" void dot_partial(const float* x, float* out, int n, cudaStream_t stream) {
    dot_kernel<<<2, 40, 0, stream>>>(x, out, n);
}

__global__ void unrolled_kernel(const float* x, float* out, int n) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += x[i] * x[threadIdx.x % n];  // eight products and sums per thread
    out[threadIdx.x] = sum;
}

extern "C" void unrolled(const float* x, float* out, int n, cudaStream_t stream) {
    unrolled_kernel<<<1, 32, 0, stream>>>(x, out, n);
}

__global__ void odd_kernel(const float* x, float* out, int n) {
    if (threadIdx.x % 2) {
        out[threadIdx.x] = x[n - 1] * x[0];  // one product in odd lanes
    }
}

extern "C" void odd(const float* x, float* out, int n, cudaStream_t stream) {
    odd_kernel<<<1, 64, 0, stream>>>(x, out, n);
}

__global__ void odd_warps_kernel(const float* x, float* out, int n) {
    if (threadIdx.x / 32 % 2) {
        out[threadIdx.x] = x[n - 1] * x[0];  // one product in odd warps
    }
}

extern "C" void odd_warps(const float* x, float* out, int n, cudaStream_t stream) {
    odd_warps_kernel<<<1, 64, 0, stream>>>(x, out, n);
}

__global__ void early_kernel(const float* x, float* out, int n) {
    if (threadIdx.x >= 10) return;
    out[threadIdx.x] = x[n - 1] / x[threadIdx.x];  // one division in the ten remaining lanes
}

extern "C" void early(const float* x, float* out, int n, cudaStream_t stream) {
    early_kernel<<<1, 32, 0, stream>>>(x, out, n);
}

template <int SIZE>
__device__ float power(float value) {
    float result = value;
#pragma unroll 1
    for (int i = 0; i < SIZE; ++i) result *= value;  // SIZE products per call
    return result;
}

__global__ void helper_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = power<5>(x[n - 1 - threadIdx.x % n]) + expf(x[0]);  // one sum and one exponential
}

extern "C" void helper(const float* x, float* out, int n, cudaStream_t stream) {
    helper_kernel<<<1, 32, 0, stream>>>(x, out, n);
}

__global__ void fused_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = fmaf(x[0], x[n - 1], x[1]);  // a fused multiply-add
}

extern "C" void fused(const float* x, float* out, int n, cudaStream_t stream) {
    fused_kernel<<<1, 32, 0, stream>>>(x, out, n);
}

__device__ __half2 two_of(__half a, __half b) { return __halves2half2(a, b); }
__device__ __nv_bfloat162 two_of(__nv_bfloat16 a, __nv_bfloat16 b) { return __halves2bfloat162(a, b); }

template <typename T>
__global__ void pairs_kernel(const float* x, float* out, int n) {
    const T a = static_cast<T>(x[0]), b = static_cast<T>(x[n - 1]);
    const auto pair = two_of(a, b);
    const auto sum = __hfma2(pair, pair, pair);  // four operations per thread: two fused multiply-adds
    out[threadIdx.x] =
        static_cast<float>(hexp(sum.x)) + static_cast<float>(hrsqrt(sum.y));  // only hexp is a special function
}

extern "C" void pairs(const float* x, float* out, int n, cudaStream_t stream) {
    pairs_kernel<__half><<<1, 32, 0, stream>>>(x, out, n);
    pairs_kernel<__nv_bfloat16><<<1, 32, 0, stream>>>(x, out, n);
}

__global__ void halves_kernel(const float* x, float* out, int n) {
    __half a = __float2half(x[0]), b = __float2half(x[n - 1]);
    out[threadIdx.x] = __half2float(__hmul(__hadd(a, b), b));
}

extern "C" void halves(const float* x, float* out, int n, cudaStream_t stream) {
    halves_kernel<<<1, 32, 0, stream>>>(x, out, n);
}

__global__ void conversions_kernel(const float* x, float* out, int n) {
    const int i = static_cast<int>(x[n - 1]);                              // one conversion to an integer
    const float back = static_cast<float>(i + n) + __int2float_rn(i - n);  // two conversions from integers
    const __half half = __int2half_rn(i);                                  // one conversion from an integer to a half
    const int whole = static_cast<int>(half) + __half2int_rz(half);        // two conversions from a half to integers
    asm("cvt.rn.f32.s32 %0, %1;" : "=f"(out[threadIdx.x]) : "r"(whole));   // one conversion from an integer, in PTX
    out[threadIdx.x] += back + __half2float(__float2half(x[0]));  // no conversion counts: no integer is involved
    out[threadIdx.x] +=
        __half2float(__hsub(__ushort_as_half(0x6400 | (i & 15)), __ushort_as_half(0x6400)));  // no conversion counts
}

extern "C" void conversions(const float* x, float* out, int n, cudaStream_t stream) {
    conversions_kernel<<<1, 32, 0, stream>>>(x, out, n);
}
