// The last levels of a tree reduction lack barriers, as was common when the lanes of a warp ran in lockstep.
// n = 32, sum<<<1, 32>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float partial[64];
    partial[threadIdx.x] = x[threadIdx.x];
    partial[threadIdx.x + 32] = 0;
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
#ifdef CLEAN
        const float other = partial[threadIdx.x + step];
        __syncwarp();
        partial[threadIdx.x] += other;
        __syncwarp();
#else
        partial[threadIdx.x] += partial[threadIdx.x + step];  // expected finding: within_warp
#endif
    }
    __syncwarp();
    out[threadIdx.x] = partial[0];
}
