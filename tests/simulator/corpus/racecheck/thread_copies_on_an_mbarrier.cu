// cp.async without cp.async.mbarrier.arrive: threads arrive before their copies are complete.
// n = 64, tile<<<1, 64>>>(x, out, n)
#include "../ptx.cuh"

// clang-format off
__device__ void copy(float* shared, const float* global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(ptx::address_of(shared)), "l"(global));  // expected finding: within_warp within_block copy_not_awaited
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 64);
    __syncthreads();
    copy(&data[threadIdx.x], x + threadIdx.x);
#ifdef CLEAN
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ptx::address_of(&full)) : "memory");
#else
    ptx::mbarrier_arrive(&full);
#endif
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = data[63 - threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}
