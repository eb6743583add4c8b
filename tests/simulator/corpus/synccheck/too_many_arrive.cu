// One more thread arrives than mbarrier.init expects.
// n = 64 elements
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
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) initialize(&all, 32);
    __syncthreads();
    out[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 32) {
        arrive(&all);
#ifndef CLEAN
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 33;" ::"r"(address_of(&all)) : "memory");  // expected finding: instruction_misused
#endif
    }
    wait(&all, 0);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 64, 0, stream>>>(x, out, n); }
