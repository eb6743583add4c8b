// Synchronizes tiles, coalesced threads and the block, each with sync() of its cooperative group.
// n = 256, groups<<<1, 256>>>(x, out, n)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void groups(const float* x, float* out, int n) {
    __shared__ float tile[256];
    auto block = cg::this_thread_block();
    auto four = cg::tiled_partition<4>(block);
    auto warp = cg::tiled_partition<32>(block);
    const int t = threadIdx.x;
    tile[t] = x[t];
    four.sync();
    float sum = tile[t ^ 1] + tile[t ^ 2];
    four.sync();
    tile[t] = sum;
    warp.sync();
    sum += tile[t ^ 16];
    sum += cg::reduce(warp, sum, cg::plus<float>());
    block.sync();
    tile[t] = sum;
    block.sync();
    sum = tile[255 - t];
    if (t % 3 == 0) {
        auto active = cg::coalesced_threads();
        sum += active.shfl(sum, 0);
    }
    out[t] = sum;
}
