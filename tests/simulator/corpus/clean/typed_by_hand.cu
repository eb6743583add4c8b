// One buffer of dynamic shared memory contains halves, followed by floats.
// n = 128 elements
#include <cuda_fp16.h>

__global__ void carve(const float* x, float* out, int n) {
    extern __shared__ __align__(16) unsigned char buffer[];
    __half* halves = reinterpret_cast<__half*>(buffer);
    float* floats = reinterpret_cast<float*>(buffer + 128 * sizeof(__half));
    const int t = threadIdx.x;
    halves[t] = __float2half(x[t]);
    floats[t] = x[t];
    __syncthreads();
    const float four = t % 4 == 0 ? reinterpret_cast<float4*>(floats)[t / 4].w : 0.0f;
    out[t] = __half2float(halves[127 - t]) + floats[t ^ 1] + four;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    carve<<<1, 128, 128 * (sizeof(__half) + sizeof(float)), stream>>>(x, out, n);
}
