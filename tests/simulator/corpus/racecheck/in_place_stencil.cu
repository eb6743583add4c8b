// An in-place stencil: threads read their neighbors' elements while these are written.
// copy<<<(n + 127) / 128, 128>>>(x, out, n); smooth<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

__global__ void smooth(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
#ifdef CLEAN
    out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;
#else
    out[i] = (out[i - 1] + out[i] + out[i + 1]) / 3;  // expected finding: between_blocks within_block within_warp
#endif
}
