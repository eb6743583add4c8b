// A bulk copy into shared memory is read before a thread waits for its mbarrier.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
        ptx::bulk_load(data, x, sizeof(data), &full);  // expected finding: within_warp within_block copy_not_awaited copy_at_exit
    }
#ifdef CLEAN
    ptx::mbarrier_wait_parity(&full, 0);
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}
