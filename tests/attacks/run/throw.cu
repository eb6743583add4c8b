// Throws an exception through the runner.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { throw 1; }
