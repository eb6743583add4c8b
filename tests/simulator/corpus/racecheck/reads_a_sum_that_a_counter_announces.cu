// Every block adds to a sum and then to a counter; one block waits until the counter is complete and reads the sum.
// Without fences the counter does not order the additions before the read.
// n = 8, start<<<1, 1>>>(); add<<<n, 1>>>(x, out, n)
__device__ float sum;
__device__ int done;

__global__ void start() {
    sum = 0;
    done = 0;
}

__global__ void add(const float* x, float* out, int n) {
    atomicAdd(&sum, x[blockIdx.x]);  // expected finding: between_blocks
#ifdef CLEAN
    __threadfence();
#endif
    atomicAdd(&done, 1);
    if (blockIdx.x != 0) return;
    while (atomicAdd(&done, 0) < n) {
    }
#ifdef CLEAN
    __threadfence();
#endif
    const float total = sum;  // expected finding: between_blocks
    for (int i = 0; i < n; ++i) out[i] = total;
}
