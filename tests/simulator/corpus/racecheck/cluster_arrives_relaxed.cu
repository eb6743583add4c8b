// A relaxed arrival publishes nothing, so the other block may not see earlier writes.
// n = 64, exchange_parts<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) exchange_parts(const float* x, float* out, int n) {
    __shared__ float mine[32];
    auto cluster = cooperative_groups::this_cluster();
    mine[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];  // expected finding: within_cluster
#ifdef CLEAN
    __cluster_barrier_arrive();
#else
    __cluster_barrier_arrive_relaxed();
#endif
    __cluster_barrier_wait();
    out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[threadIdx.x];  // expected finding: within_cluster
    cluster.sync();
}
