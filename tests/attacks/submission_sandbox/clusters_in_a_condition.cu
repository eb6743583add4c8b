// A macro with two definitions contains __cluster_dims__. The grid is no multiple of the cluster.
// Expected finding: refused.
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#define CLUSTER __cluster_dims__(3, 1, 1)
#else
#define CLUSTER
#endif
__global__ void CLUSTER kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64 / 4 * 4 + 4, 64, 0, stream>>>(x, out, n);
}
