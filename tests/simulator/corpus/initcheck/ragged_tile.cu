// The tile is not filled with zeros past the end of the input.
// sum<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
#ifdef CLEAN
    else
        tile[threadIdx.x] = 0;
#endif
    __syncthreads();
    float total = 0;
    for (int j = 0; j < 128; ++j) total += tile[j];  // expected finding: uninitialized_read
    if (i < n) out[i] = total;
}
