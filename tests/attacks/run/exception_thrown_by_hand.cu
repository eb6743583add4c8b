// Calls the exception runtime directly, with a destructor of its choice.
// Expected: the build is refused.
extern "C" void __cxa_throw(void*, void*, void (*)(void*));
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    if (n < 0) __cxa_throw(nullptr, nullptr, nullptr);
}
