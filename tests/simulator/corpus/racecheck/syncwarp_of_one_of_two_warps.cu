// Two warps read a scale. One warp overwrites it when a counter shows that all lanes have read it. Its __syncwarp()
// orders its own reads before the write, but not the other warp's.
// n = 64, start<<<1, 1>>>(); use<<<1, n>>>(x, out, n)
__device__ float scale;
__device__ int readers;

__global__ void start() {
    scale = 2;
    readers = 0;
}

__global__ void use(const float* x, float* out, int n) {
    const int i = threadIdx.x;
    out[i] = scale * x[i];  // expected finding: within_block
    atomicAdd(&readers, 1);
    __syncwarp();
#ifdef CLEAN
    __syncthreads();
#endif
    if (i == 40) {
        while (atomicAdd(&readers, 0) < n) {
        }
        scale = 3;  // expected finding: within_block
    }
}
