// sync() of a tile of 16 threads does not order the two tiles of a warp.
// n = 32, rotate<<<1, 32>>>(x, out, n)
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[32];
#ifdef CLEAN
    auto group = cg::tiled_partition<32>(cg::this_thread_block());
#else
    auto group = cg::tiled_partition<16>(cg::this_thread_block());
#endif
    tile[threadIdx.x] = x[threadIdx.x];  // expected finding: within_warp
    group.sync();
    out[threadIdx.x] = tile[31 - threadIdx.x];  // expected finding: within_warp
}
