// Half of the threads reach a barrier that the other half never executes.
// n = 128, swap<<<1, 128>>>(x, out, n)
__global__ void swap(const float* x, float* out, int n) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
#ifdef CLEAN
    __syncthreads();
    if (threadIdx.x < 64) tile[threadIdx.x] *= 2;
    __syncthreads();
#else
    __syncthreads();
    if (threadIdx.x < 64) {
        tile[threadIdx.x] *= 2;
        __syncthreads();  // expected finding: barrier_after_exit
    }
#endif
    out[threadIdx.x] = tile[threadIdx.x];
}
