// All threads of a block read a scale before and after a barrier. One thread overwrites the scale when a counter shows
// that all threads have read it twice. The counter does not order the reads before the write.
// n = 64, start<<<1, 1>>>(); use<<<1, n>>>(x, out, n)
__device__ float scale;

__global__ void start() { scale = 2; }

__global__ void use(const float* x, float* out, int n) {
    __shared__ int readers;
    const int i = threadIdx.x;
    if (i == 0) readers = 0;
    const float before = scale * x[i];
    __syncthreads();
    out[i] = before + scale;  // expected finding: within_block within_warp
    atomicAdd(&readers, 1);
#ifdef CLEAN
    __syncthreads();
#endif
    if (i == 40) {
        while (atomicAdd(&readers, 0) < n) {
        }
        scale = 3;  // expected finding: within_block within_warp
    }
}
