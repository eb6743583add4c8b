// A row pitch in bytes is used in units of elements, which leads far outside of all memory.
__global__ void gather(const float* x, float* out, int n, long long pitch) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i * pitch];  // expected finding: illegal_address
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    const long long pitch = 1;
#else
    const long long pitch = 1ll << 40;
#endif
    gather<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, pitch);
}
