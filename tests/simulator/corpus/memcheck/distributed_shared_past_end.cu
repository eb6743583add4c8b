// A thread reads past the end of an array in the shared memory of another block.
// n = 64, swap<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) swap(const float* x, float* out, int n) {
    __shared__ float mine[32];
    auto cluster = cooperative_groups::this_cluster();
    mine[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    cluster.sync();
    const float* theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
#ifdef CLEAN
    int i = 31 - threadIdx.x;
#else
    int i = 32 - threadIdx.x;
#endif
    out[blockIdx.x * 32 + threadIdx.x] = theirs[i];  // expected finding: out_of_bounds
    cluster.sync();
}
