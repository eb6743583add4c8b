// The launch requests 64 KB of dynamic shared memory without cudaFuncSetAttribute, so CUDA refuses it.
__global__ void copy(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        tile[i] = x[i];
        out[i] = tile[i];
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    const int bytes = 64 * 1024;
#ifdef CLEAN
    cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
#endif
    copy<<<1, 128, bytes, stream>>>(x, out, n);  // expected finding: refused
}
