// An optional bias is used without a check for null.
// add_bias<<<(n + 127) / 128, 128>>>(x, nullptr, out, n)
__global__ void add_bias(const float* x, const float* bias, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    out[i] = x[i] + (bias ? bias[i] : 0.0f);
#else
    out[i] = x[i] + bias[i];  // expected finding: null_pointer
#endif
}
