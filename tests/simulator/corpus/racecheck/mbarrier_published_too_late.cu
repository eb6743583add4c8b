// One thread initializes the mbarrier, and others use it without a barrier in between.
// n = 64 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void initialize(unsigned long long* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));  // expected finding: within_warp within_block
}
__device__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");  // expected finding: within_warp within_block
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long ready;
    if (threadIdx.x == 0) initialize(&ready, 1);
#ifdef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        for (int i = 0; i < 64; ++i) data[i] = x[i];
        arrive(&ready);
    }
    wait(&ready, 0);
    out[threadIdx.x] = data[63 - threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 64, 0, stream>>>(x, out, n); }
