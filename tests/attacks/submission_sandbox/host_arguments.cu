// The launcher passes cudaLaunchKernel arguments that lie in device memory, so the host would read that memory.
// Expected finding: host_access.
__global__ void kernel(float first, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 0 * first;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {const_cast<float*>(x), &x, &out, &n};
    if (n > 0) cudaLaunchKernel((const void*)kernel, dim3((n + 63) / 64), dim3(64), arguments, 0, stream);
}
