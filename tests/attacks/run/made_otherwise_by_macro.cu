// Hides an attribute that changes compiler options behind a macro. Defense: names.
#define MADE(how) __attribute__((how))
MADE(optimize("omit-frame-pointer")) static void quietly() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
