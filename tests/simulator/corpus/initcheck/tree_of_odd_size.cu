// A tree reduction for 128 threads runs with 96, so it adds elements that were never written.
// sum<<<1, 96>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float partial[128];
    partial[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 0.0f;
#ifdef CLEAN
    if (threadIdx.x < 32) partial[threadIdx.x + 96] = 0;
#endif
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];  // expected finding: uninitialized_read
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += 96) out[i] = partial[0];
}
