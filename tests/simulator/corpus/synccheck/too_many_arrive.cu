// One more thread arrives than mbarrier.init expects.
// n = 64, tile<<<1, 64>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) ptx::mbarrier_init(&all, 32);
    __syncthreads();
    out[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 32) {
        ptx::mbarrier_arrive(&all);
#ifndef CLEAN
        const unsigned address = ptx::address_of(&all);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 33;" ::"r"(address) : "memory");  // expected finding: instruction_misused
#endif
    }
    ptx::mbarrier_wait_parity(&all, 0);
}
