// Thread 0 stores a total, which other threads read without a barrier.
// scale<<<1, 128>>>(x, out, n)
__global__ void scale(const float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[i];
        total = sum;  // expected finding: within_block within_warp
    }
#ifdef CLEAN
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] / total;  // expected finding: within_block within_warp
}
