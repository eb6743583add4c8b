// Changes compiler options with a pragma.
// Expected: the build is refused.
#pragma GCC optimize("omit-frame-pointer")
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
