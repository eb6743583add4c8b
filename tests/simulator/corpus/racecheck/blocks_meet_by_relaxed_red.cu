// All blocks of a cooperative launch wait for a counter that one thread of each block increments. The relaxed red
// instruction does not publish the block's earlier writes.
// n = 1024 elements
__global__ void reverse(const float* x, float* out, float* scratch, unsigned* arrivals, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[i] = x[i];  // expected finding: between_blocks
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
#else
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
#endif
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
        } while (seen < gridDim.x);
    }
    __syncthreads();
    out[i] = scratch[n - 1 - i];  // expected finding: between_blocks
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    unsigned* arrivals = nullptr;
    cudaMallocAsync(&scratch, n * sizeof(float), stream);
    cudaMallocAsync(&arrivals, sizeof(unsigned), stream);
    cudaMemsetAsync(arrivals, 0, sizeof(unsigned), stream);
    void* arguments[] = {&x, &out, &scratch, &arrivals, &n};
    cudaLaunchCooperativeKernel(reverse, dim3(n / 256), dim3(256), arguments, 0, stream);
    cudaFreeAsync(scratch, stream);
    cudaFreeAsync(arrivals, stream);
}
