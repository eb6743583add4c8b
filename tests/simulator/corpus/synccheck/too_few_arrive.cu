// mbarrier.init expects all threads of the block, but only those with i < n arrive.
// n = 100 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void initialize(unsigned long long* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}
__device__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");  // expected finding: deadlock
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[128];
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) initialize(&all, 128);
    __syncthreads();
    if (threadIdx.x < n) {
        data[threadIdx.x] = x[threadIdx.x];
#ifndef CLEAN
        arrive(&all);
#endif
    }
#ifdef CLEAN
    arrive(&all);
#endif
    wait(&all, 0);
    if (threadIdx.x < n) out[threadIdx.x] = data[n - 1 - threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 128, 0, stream>>>(x, out, n); }
