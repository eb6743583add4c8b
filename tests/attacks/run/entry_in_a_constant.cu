// Puts the bytes of `endbr64`, which mark a valid call target, into a constant in a function's code.
// Expected: the build is refused.
__attribute__((noinline)) static unsigned entry(unsigned x) { return x ^ 0xfa1e0ff3u; }

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (entry(static_cast<unsigned>(n)) != 0) reward(x, out, n, stream);
}
