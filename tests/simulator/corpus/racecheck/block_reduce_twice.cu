// A block-wide sum is called twice: the second call writes its partial sums while some threads still read the
// result of the first.
// normalize<<<1, 128>>>(x, out, n)
__device__ float block_sum(float value) {
    __shared__ float partial[4];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
#ifdef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;  // expected finding: within_block within_warp
    __syncthreads();
    return partial[0] + partial[1] + partial[2] + partial[3];  // expected finding: within_block within_warp
}

__global__ void normalize(const float* x, float* out, int n) {
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += 128) sum += x[i];
    const float mean = block_sum(sum) / n;
    for (int i = threadIdx.x; i < n; i += 128) squares += (x[i] - mean) * (x[i] - mean);
    const float variance = block_sum(squares) / n;
    for (int i = threadIdx.x; i < n; i += 128) out[i] = (x[i] - mean) * rsqrtf(variance + 1e-5f);
}
