// Changes compiler options of a function with an attribute that a macro spells.
// Expected: the build is refused.
#define MADE(how) __attribute__((how))
MADE(optimize("omit-frame-pointer")) static void quietly() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
