// Many threads of two blocks read a scale, then one block overwrites it. Its barrier does not order the other block's
// reads.
// n = 128, start<<<1, 1>>>(); use<<<2, 64>>>(x, out, n)
__device__ float scale;
__device__ volatile int has_read;

__global__ void start() {
    scale = 2;
    has_read = 0;
}

__global__ void use(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = scale * x[i];  // expected finding: between_blocks
#ifdef CLEAN
    __threadfence();
#endif
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 1) {
        has_read = 1;
    } else {
        while (has_read == 0) {
        }
#ifdef CLEAN
        __threadfence();
#endif
        scale = 3;  // expected finding: between_blocks
    }
}
