// The loop condition is <= instead of <.
// sum<<<1, 32>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    float total = 0;
#ifdef CLEAN
    for (int i = 0; i < n; ++i) {
#else
    for (int i = 0; i <= n; ++i) {
#endif
        total += x[i];  // expected finding: out_of_bounds
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = total;
}
