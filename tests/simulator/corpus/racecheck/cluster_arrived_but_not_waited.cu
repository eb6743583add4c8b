// A block arrives at the cluster barrier, but reads its neighbor's sum before it waits.
// n = 128, sums_of_two<<<4, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) sums_of_two(const float* x, float* out, int n) {
    __shared__ float sum;
    auto cluster = cooperative_groups::this_cluster();
    float* theirs = cluster.map_shared_rank(&sum, cluster.block_rank() ^ 1);
    if (threadIdx.x == 0) sum = x[blockIdx.x * 32];  // expected finding: within_cluster
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#ifdef CLEAN
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
    out[blockIdx.x * 32 + threadIdx.x] = *theirs;  // expected finding: within_cluster uninitialized_read
#ifndef CLEAN
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
    cluster.sync();
}
