// Makes the compiler load a plugin.
#pragma GCC plugin "/tmp/evil.so"
#pragma GCC pch_preprocess "/etc/passwd"
static_assert(false, "no plugin");

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
