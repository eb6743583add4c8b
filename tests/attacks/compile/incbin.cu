// Embeds the bytes of the solution in the library with .incbin.
asm(".incbin \"@SOLUTION@\"");

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
