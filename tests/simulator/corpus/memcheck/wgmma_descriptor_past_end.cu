// Offsets in a matrix descriptor are bytes instead of units of 16 bytes, so wgmma reads past the end of the tile.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
    ptx::wgmma_fence();
#ifdef CLEAN
    ptx::wgmma(d, a, b);
#else
    const uint64_t offsets = 128ull << 16 | 256ull << 32;
    ptx::wgmma(d, ptx::address_of(a) >> 4 | offsets, ptx::address_of(b) >> 4 | offsets);  // expected finding: out_of_bounds
#endif
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
