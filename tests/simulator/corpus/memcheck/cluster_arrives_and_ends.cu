// A block arrives at the cluster barrier and exits without waiting, while other blocks still write to its shared
// memory.
// n = 64, sums<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) sums(const float* x, float* out, int n) {
    __shared__ int count;
    auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) count = 0;
    cluster.sync();
    atomicAdd(cluster.map_shared_rank(&count, 0), x[threadIdx.x] > 3);  // expected finding: ended_block
    cluster.barrier_arrive();
#ifdef CLEAN
    cluster.barrier_wait();
#else
    if (cluster.block_rank() == 1) cluster.barrier_wait();
#endif
    out[blockIdx.x * 32 + threadIdx.x] = 0;
}
