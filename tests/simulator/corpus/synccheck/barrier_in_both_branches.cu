// Each branch has its own barrier, so threads of a block wait at different ones.
// n = 128, branch<<<1, 128>>>(x, out, n)
__global__ void branch(const float* x, float* out, int n) {
    __shared__ float tile[128];
#ifdef CLEAN
    tile[threadIdx.x] = threadIdx.x % 2 ? x[threadIdx.x] : 2 * x[threadIdx.x];
    __syncthreads();
#else
    if (threadIdx.x % 2) {
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();  // expected finding: barrier_sites_differ
    } else {
        tile[threadIdx.x] = 2 * x[threadIdx.x];
        __syncthreads();  // expected finding: barrier_sites_differ
    }
#endif
    out[threadIdx.x] = tile[127 - threadIdx.x];
}
