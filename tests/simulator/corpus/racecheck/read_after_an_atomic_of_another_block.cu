// Block 0 adds to a counter and reads it. An ordinary read by another block is not ordered with the addition.
// n = 64 elements
__device__ int counter;

__global__ void clear() { counter = 0; }

__global__ void count(float* out, int n) {
    __shared__ int seen;
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) atomicAdd(&counter, 1);  // expected finding: between_blocks
#ifdef CLEAN
        seen = atomicAdd(&counter, 0);
#else
        seen = counter;  // expected finding: between_blocks
#endif
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 1, 0, stream>>>();
    count<<<2, n / 2, 0, stream>>>(out, n);
}
