// Jumps to an address in a forged jump buffer, with the compiler's builtin functions.
// Expected: the build is refused.
static void* place[5];
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    if (__builtin_setjmp(place) == 0) __builtin_longjmp(place, 1);
}
