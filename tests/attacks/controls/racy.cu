// The result is correct, but the kernel has a race.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { race(x, out, n, stream); }
