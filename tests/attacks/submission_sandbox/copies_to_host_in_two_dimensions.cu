// The launcher copies from the device to the host by cudaMemcpy2D.
// Expected finding: host_copies.
static float rows[2][32];
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaMemcpy2D(rows, sizeof rows[0], x, 64, 64, 2, cudaMemcpyDeviceToHost);
}
