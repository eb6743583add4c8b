// A tree reduction lacks barriers between its levels.
// n = 256, sum<<<1, 256>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float partial[256];
    partial[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];  // expected finding: within_block within_warp
#ifdef CLEAN
        __syncthreads();
#endif
    }
    __syncthreads();
    out[threadIdx.x] = partial[0];
}
