// The tiles of blocks overlap by one row, to which both blocks write different values.
// n = 1024, tiles<<<8, 128>>>(x, out, n)
__global__ void tiles(const float* x, float* out, int n) {
#ifdef CLEAN
    const int i = blockIdx.x * 128 + threadIdx.x;
#else
    const int i = blockIdx.x * 124 + threadIdx.x;
#endif
    out[i] = x[i] + blockIdx.x;  // expected finding: between_blocks
#ifndef CLEAN
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < 28) out[996 + threadIdx.x] = 0;
#endif
}
