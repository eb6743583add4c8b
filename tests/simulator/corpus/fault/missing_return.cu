// A device function reaches its closing brace without return.
// copy<<<(n + 127) / 128, 128>>>(x, out, n)
#ifdef CLEAN
__device__ float store(float* to, float x) { return *to = x; }
#else
__device__ float store(float* to, float x) { *to = x; }  // expected finding: missing_return
#endif

__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i != 5) out[i] = x[i];
    if (i == 5) store(out + i, x[i]);
}
