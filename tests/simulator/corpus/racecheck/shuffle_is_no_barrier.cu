// Lanes exchange data through shared memory with a shuffle in between, which does not order memory accesses.
// n = 32, rotate<<<1, 32>>>(x, out, n)
__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x;
    tile[lane] = x[lane];  // expected finding: within_warp
    const float first = __shfl_sync(0xffffffffu, x[lane], 0);
#ifdef CLEAN
    __syncwarp();
#endif
    out[lane] = first + tile[(lane + 1) % 32];  // expected finding: within_warp
}
