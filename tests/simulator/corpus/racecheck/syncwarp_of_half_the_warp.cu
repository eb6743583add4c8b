// The mask of __syncwarp() contains only the lower half of the warp.
// n = 32, rotate<<<1, 32>>>(x, out, n)
__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x;
    tile[lane] = x[lane];  // expected finding: within_warp
#ifdef CLEAN
    __syncwarp();
#else
    __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
#endif
    out[lane] = tile[(lane + 16) % 32];  // expected finding: within_warp
}
