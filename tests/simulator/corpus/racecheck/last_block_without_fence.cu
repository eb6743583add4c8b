// The last block adds the partial sums of all blocks, which are not published by a fence.
// n = 1024, clear<<<1, 128>>>(out, n); sum<<<n / 32, 32>>>(x, out, n)
__device__ unsigned finished;

__global__ void sum(const float* x, float* out, int n) {
    __shared__ bool last;
    float value = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = value;  // expected finding: between_blocks
#ifdef CLEAN
        __threadfence();
#endif
        last = atomicAdd(&finished, 1u) == gridDim.x - 1;  // expected finding: between_blocks
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    if (threadIdx.x == 0) {
        float total = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) total += out[1 + b];  // expected finding: between_blocks
        out[0] = total;
        finished = 0;  // expected finding: between_blocks
    }
}

__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}
