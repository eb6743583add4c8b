// Compiles a function without a frame pointer, by an attribute. Defense: names.
__attribute__((optimize("omit-frame-pointer"))) static void quietly() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
