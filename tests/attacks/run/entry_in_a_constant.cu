// Hides the bytes that mark a valid call target inside a constant in the middle of a function. Defense: names.
__attribute__((noinline)) static unsigned entry(unsigned x) { return x ^ 0xfa1e0ff3u; }

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (entry(static_cast<unsigned>(n)) != 0) reward(x, out, n, stream);
}
