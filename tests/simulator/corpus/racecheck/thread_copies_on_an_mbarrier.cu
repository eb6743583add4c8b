// cp.async without cp.async.mbarrier.arrive: threads arrive before their copies are complete.
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
__device__ void copy(float* shared, const float* global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(shared)), "l"(global));  // expected finding: within_warp within_block copy_not_awaited
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) initialize(&full, 64);
    __syncthreads();
    copy(&data[threadIdx.x], x + threadIdx.x);
#ifdef CLEAN
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address_of(&full)) : "memory");
#else
    arrive(&full);
#endif
    wait(&full, 0);
    out[threadIdx.x] = data[63 - threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 64, 0, stream>>>(x, out, n); }
