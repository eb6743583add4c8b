// The last block reads the other blocks' results. The thread that draws the ticket must execute a fence after it; the
// barrier that follows is no fence.
// n = 1024, clear<<<1, 128>>>(out, n); sum<<<n / 32, 32>>>(x, out, n)
__device__ unsigned finished;

__global__ void sum(const float* x, float* out, int n) {
    __shared__ bool last;
    float value = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = value;  // expected finding: between_blocks
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
#ifdef CLEAN
        __threadfence();
#endif
    }
    __syncthreads();
    if (!last) return;
    float total = out[1 + threadIdx.x];  // expected finding: between_blocks
    for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffffu, total, step);
    if (threadIdx.x == 0) out[0] = total;
}

__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}
