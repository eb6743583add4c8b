// Has the compiler keep the stack's old place among local variables, where it could be forged. Defence: names.
struct alignas(64) Wide {
    long words[8];
};
__attribute__((noinline)) static long forge(volatile Wide* wide, volatile char* bytes) {
    return wide->words[0] + bytes[0];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    Wide wide = {};
    auto* bytes = static_cast<char*>(__builtin_alloca(n + 1));
    bytes[0] = 1;
    if (forge(&wide, bytes) != 0) reward(x, out, n, stream);
}
