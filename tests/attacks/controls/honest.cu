// A correct kernel.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
