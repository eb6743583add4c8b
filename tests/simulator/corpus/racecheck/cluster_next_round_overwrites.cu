// A block writes its next values while its neighbor may still read the previous ones.
// n = 64, rounds<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) rounds(const float* x, float* out, int n) {
    __shared__ float mine[32];
    auto cluster = cooperative_groups::this_cluster();
    const float* theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    float value = x[blockIdx.x * 32 + threadIdx.x];
    for (int round = 0; round < 3; ++round) {
        mine[threadIdx.x] = value;  // expected finding: within_cluster
        cluster.sync();
        value += theirs[threadIdx.x];  // expected finding: within_cluster
#ifdef CLEAN
        cluster.sync();
#endif
    }
    out[blockIdx.x * 32 + threadIdx.x] = value;
    cluster.sync();
}
