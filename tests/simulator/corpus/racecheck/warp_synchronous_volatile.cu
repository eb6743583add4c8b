// The last levels of a tree reduction rely on volatile. It prevents caching in registers, but does not synchronize
// lanes.
// n = 32, sum<<<1, 32>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float partial[64];
    partial[threadIdx.x] = x[threadIdx.x];
    partial[threadIdx.x + 32] = 0;
    __syncwarp();
    volatile float* v = partial;
    for (int step = 16; step > 0; step /= 2) {
#ifdef CLEAN
        const float other = v[threadIdx.x + step];
        __syncwarp();
        v[threadIdx.x] = v[threadIdx.x] + other;
        __syncwarp();
#else
        v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + step];  // expected finding: within_warp
#endif
    }
    __syncwarp();
    out[threadIdx.x] = partial[0];
}
