// Builds a library that is larger than the disk.
char large[1L << 36] = {1};

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
