// One thread waits for the bulk copy, but the others do not.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
        ptx::bulk_load(data, x, sizeof(data), &full);  // expected finding: within_warp within_block copy_not_awaited
        ptx::mbarrier_wait_parity(&full, 0);
    }
#ifdef CLEAN
    __syncthreads();
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}
