// atomicAdd_block is atomic only for threads of one block, but all blocks add to one element.
// n = 1024, clear<<<1, 128>>>(out, n); sum<<<n / 128, 128>>>(x, out, n)
__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}

__global__ void sum(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef CLEAN
    atomicAdd(&out[i % 8], x[i]);
#else
    atomicAdd_block(&out[i % 8], x[i]);  // expected finding: between_blocks
#endif
}
