// A macro contains __cluster_dims__. The grid is no multiple of the cluster.
// Expected finding: refused.
#define CLUSTER __cluster_dims__(3, 1, 1)
__global__ void CLUSTER kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64 / 4 * 4 + 4, 64, 0, stream>>>(x, out, n);
}
