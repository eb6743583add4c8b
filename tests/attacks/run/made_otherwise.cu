// Has a function made without frame pointers. Defense: names.
__attribute__((optimize("omit-frame-pointer"))) static void quietly() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
