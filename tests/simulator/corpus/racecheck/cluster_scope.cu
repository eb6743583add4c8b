// Blocks synchronize through a flag with cluster scope, but without clusters each block is its own cluster.
// n = 64 elements
__device__ int flag;

__global__ void hand_over(const float* x, float* out, int n) {
    if (blockIdx.x == 0) {
        out[threadIdx.x] = x[threadIdx.x];  // expected finding: between_blocks
        __syncthreads();
        if (threadIdx.x == 0) {
#ifdef CLEAN
            asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(&flag) : "memory");
#else
            asm volatile("st.release.cluster.global.b32 [%0], 1;" ::"l"(&flag) : "memory");  // expected finding: between_blocks
#endif
        }
    } else {
        if (threadIdx.x == 0) {
            int ready = 0;
            while (!ready) {
#ifdef CLEAN
                asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(ready) : "l"(&flag) : "memory");
#else
                asm volatile("ld.acquire.cluster.global.b32 %0, [%1];" : "=r"(ready) : "l"(&flag) : "memory");  // expected finding: between_blocks
#endif
            }
        }
        __syncthreads();
        out[32 + threadIdx.x] = out[threadIdx.x] + 1;  // expected finding: between_blocks
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    const int zero = 0;
    cudaMemcpyToSymbol(flag, &zero, sizeof(zero));
    hand_over<<<2, 32, 0, stream>>>(x, out, n);
}
