// Residual add, version by version: out = x + residual. Each version adds one idea to the one before.
//
// Version 1: one thread adds all elements, as a CPU would.
// Version 2: one thread per element, and a guard for threads without an element. Any dtype.
// Version 3: four neighboring elements per thread, one at a time. Fewer threads, more sectors.
// Version 4: four neighboring elements per thread, all in one 128-bit access.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x, residual and out are (n).

// Version 1: a loop over all elements, in a single thread.
__global__ void add_kernel1(const float* x, const float* residual, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = x[i] + residual[i];
}

// Version 2: no loop. Each thread computes the index of its own element.
template <typename T>
__global__ void add_kernel2(const T* x, const T* residual, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<T>(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
}

// Version 3: thread i takes elements 4i to 4i + 3.
__global__ void add_kernel3(const float* x, const float* residual, float* out, int n) {
    const int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = first; i < first + 4 && i < n; ++i) out[i] = x[i] + residual[i];
}

// Version 4: the same four elements, as one float4. n must be a multiple of 4, the addresses multiples of 16.
__global__ void add_kernel4(const float4* x, const float4* residual, float4* out, int vectors) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= vectors) return;
    const float4 a = x[i];
    const float4 b = residual[i];
    out[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers. They run on the CPU and say how many blocks of how many threads to start.

// The number of blocks that gives each of n elements a thread: n / threads, rounded up.
int blocks_for(int n, int threads) { return (n + threads - 1) / threads; }

extern "C" void add_1(const float* x, const float* residual, float* out, int n, cudaStream_t stream) {
    add_kernel1<<<1, 1, 0, stream>>>(x, residual, out, n);
}

extern "C" void add_2(const float* x, const float* residual, float* out, int n, int threads, cudaStream_t stream) {
    add_kernel2<<<blocks_for(n, threads), threads, 0, stream>>>(x, residual, out, n);
}

extern "C" void add_2_f16(const __half* x, const __half* residual, __half* out, int n, int threads,
                          cudaStream_t stream) {
    add_kernel2<<<blocks_for(n, threads), threads, 0, stream>>>(x, residual, out, n);
}

extern "C" void add_2_bf16(const __nv_bfloat16* x, const __nv_bfloat16* residual, __nv_bfloat16* out, int n,
                           int threads, cudaStream_t stream) {
    add_kernel2<<<blocks_for(n, threads), threads, 0, stream>>>(x, residual, out, n);
}

extern "C" void add_3(const float* x, const float* residual, float* out, int n, int threads, cudaStream_t stream) {
    add_kernel3<<<blocks_for(blocks_for(n, 4), threads), threads, 0, stream>>>(x, residual, out, n);
}

extern "C" void add_4(const float* x, const float* residual, float* out, int n, int threads, cudaStream_t stream) {
    add_kernel4<<<blocks_for(n / 4, threads), threads, 0, stream>>>(reinterpret_cast<const float4*>(x),
                                                                    reinterpret_cast<const float4*>(residual),
                                                                    reinterpret_cast<float4*>(out), n / 4);
}
