// All threads add to a few sums with atomics. The last block, which a counter determines, reads them.
// n = 1024, clear<<<1, 8>>>(); add<<<n / 128, 128>>>(x, out, n)
__device__ unsigned finished;
__device__ float sums[8];

__global__ void clear() {
    sums[threadIdx.x] = 0;
    if (threadIdx.x == 0) finished = 0;
}

__global__ void add(const float* x, float* out, int n) {
    __shared__ bool last;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i % 8], x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&finished, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    for (int j = threadIdx.x; j < n; j += blockDim.x) out[j] = sums[j % 8];
}
