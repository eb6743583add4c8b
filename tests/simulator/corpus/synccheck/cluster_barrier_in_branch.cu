// Half of the threads of each block wait at the cluster barrier, and the other half at the block's barrier.
// n = 128, copy_by_halves<<<2, 64>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) copy_by_halves(const float* x, float* out, int n) {
    auto cluster = cooperative_groups::this_cluster();
    out[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
#ifdef CLEAN
    cluster.sync();
#else
    if (threadIdx.x < 32) cluster.sync();  // expected finding: deadlock
#endif
    __syncthreads();  // expected finding: deadlock
}
