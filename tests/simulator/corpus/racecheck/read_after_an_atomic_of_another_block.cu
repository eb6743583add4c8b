// Block 0 adds to a counter and reads it. An ordinary read by another block is not ordered with the addition.
// n = 64, clear<<<1, 1>>>(); count<<<2, n / 2>>>(out, n)
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
