// A flag in global memory has cluster scope, so it orders blocks of one cluster, but not of two clusters.
// n = 128 elements
__device__ int flag;

__global__ void __cluster_dims__(2, 1, 1) hand_over_in_cluster(const float* x, float* out, int n) {
#ifdef CLEAN
    const int reader = 1;
#else
    const int reader = 2;
#endif
    if (blockIdx.x == 0) {
        out[threadIdx.x] = x[threadIdx.x];  // expected finding: between_blocks
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("st.release.cluster.global.b32 [%0], 1;" ::"l"(&flag) : "memory");
    } else if (blockIdx.x == reader) {
        if (threadIdx.x == 0) {
            int ready = 0;
            while (!ready) asm volatile("ld.acquire.cluster.global.b32 %0, [%1];" : "=r"(ready) : "l"(&flag) : "memory");
        }
        __syncthreads();
        out[32 + threadIdx.x] = out[threadIdx.x] + 1;  // expected finding: between_blocks
    } else {
        out[(blockIdx.x == 3 ? 64 : 96) + threadIdx.x] = 0;
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    const int zero = 0;
    cudaMemcpyToSymbol(flag, &zero, sizeof(zero));
    hand_over_in_cluster<<<4, 32, 0, stream>>>(x, out, n);
}
