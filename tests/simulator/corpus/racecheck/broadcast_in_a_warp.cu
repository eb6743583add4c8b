// All lanes of a warp read an element, then one lane overwrites it without a __syncwarp() in between.
// n = 64, shift<<<1, n>>>(x, out, n)
__global__ void shift(const float* x, float* out, int n) {
    __shared__ float first[2];
    const int i = threadIdx.x, warp = i / 32;
    if (i % 32 == 0) first[warp] = x[i];
    __syncwarp();
    out[i] = first[warp] + x[i];  // expected finding: within_warp
#ifdef CLEAN
    __syncwarp();
#endif
    if (i % 32 == 7) first[warp] = 0;  // expected finding: within_warp
}
