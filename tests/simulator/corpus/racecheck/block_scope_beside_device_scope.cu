// Block 0 uses an atomic operation of block scope, and other blocks use one of device scope.
// start<<<1, 1>>>(); count<<<(n + 127) / 128, 128>>>(x, out, n)
__device__ int counter;

__global__ void start() { counter = 0; }

__global__ void count(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    atomicMax(&counter, i);
    out[i] = x[i];
#else
    if (blockIdx.x == 0) {
        atomicMax_block(&counter, i);  // expected finding: between_blocks
        out[i] = x[i];
    } else {
        out[i] = 2 * x[i];
        atomicMax(&counter, i);  // expected finding: between_blocks
    }
#endif
}
