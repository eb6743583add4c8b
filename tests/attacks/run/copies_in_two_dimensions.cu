// Carries traffic by cudaMemcpy2DAsync instead of a kernel.
static float* scratch;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (!scratch) cudaMalloc(&scratch, 4096);
    cudaMemcpy2DAsync(scratch, 64, x, 32, 32, n / 8, cudaMemcpyDeviceToDevice, stream);
    reward(x, out, n, stream);
}
