// The next iteration overwrites a tile that other threads may still read.
// sums<<<1, 64>>>(x, out, n)
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float tile[64];
    float total = 0;
    for (int first = 0; first < n; first += 64) {
        tile[threadIdx.x] = first + threadIdx.x < n ? x[first + threadIdx.x] : 0.0f;  // expected finding: within_block within_warp
        __syncthreads();
        for (int j = 0; j < 64; ++j) total += tile[j];  // expected finding: within_block within_warp
#ifdef CLEAN
        __syncthreads();
#endif
    }
    for (int i = threadIdx.x; i < n; i += 64) out[i] = total;
}
