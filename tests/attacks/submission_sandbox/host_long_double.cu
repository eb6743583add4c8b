// The launcher copies device memory as a long double.
// Expected finding: host_access.
static volatile long double kept;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    kept = *reinterpret_cast<const long double*>(x);
}
