// One block waits for an mbarrier at which no thread arrives, so it never reaches the cluster barrier.
// n = 64, copy_or_wait<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

#include "../ptx.cuh"

__global__ void __cluster_dims__(2, 1, 1) copy_or_wait(const float* x, float* out, int n) {
    __shared__ unsigned long long full;
    auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 32);
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    if (cluster.block_rank() == 1) {
#ifdef CLEAN
        ptx::mbarrier_arrive(&full);
#endif
        ptx::mbarrier_wait_parity(&full, 0);  // expected finding: deadlock
    }
    cluster.sync();  // expected finding: deadlock
}
