// Many threads add to one counter with +=.
// histogram<<<1, 128>>>(x, out, n)
__global__ void histogram(const float* x, float* out, int n) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
#ifdef CLEAN
        atomicAdd(&bins[i / 3 % 16], 1);
#else
        bins[i / 3 % 16] += 1;  // expected finding: within_block within_warp
#endif
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = bins[i % 16];
}
