// Each block accesses the shared memory of the block with the next rank. For the last block, the cluster has no such
// rank.
// n = 128, shift<<<4, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(4, 1, 1) shift(const float* x, float* out, int n) {
    __shared__ float mine[32];
    auto cluster = cooperative_groups::this_cluster();
    mine[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    cluster.sync();
#ifdef CLEAN
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
#else
    const unsigned next = cluster.block_rank() + 1;
#endif
    out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, next)[threadIdx.x];  // expected finding: instruction_misused
    cluster.sync();
}
