// Each block reads what the next block of its cluster writes, but __syncthreads() synchronizes only one block.
// n = 256, shift_by_a_block<<<8, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(4, 1, 1) shift_by_a_block(const float* x, float* out, int n) {
    __shared__ float mine[32];
    auto cluster = cooperative_groups::this_cluster();
    mine[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];  // expected finding: within_cluster
#ifdef CLEAN
    cluster.sync();
#else
    __syncthreads();
#endif
    const float* next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % 4);
    out[blockIdx.x * 32 + threadIdx.x] = next[threadIdx.x];  // expected finding: within_cluster uninitialized_read
    cluster.sync();
}
