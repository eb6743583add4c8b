// A bulk copy into shared memory is in flight at a grid barrier, which waits for no copy, and its data are read before a
// thread waits for its mbarrier.
// n = 128 elements
#include <cooperative_groups.h>

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
    cooperative_groups::this_grid().sync();
#ifdef CLEAN
    ptx::mbarrier_wait_parity(&full, 0);
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {&x, &out, &n};
    cudaLaunchCooperativeKernel(tile, dim3(1), dim3(128), arguments, 0, stream);
}
