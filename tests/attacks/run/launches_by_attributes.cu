// Launches a second kernel by cudaLaunchKernelEx.
__global__ void nothing(int) {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = stream;
    cudaLaunchKernelEx(&config, nothing, n);
    reward(x, out, n, stream);
}
