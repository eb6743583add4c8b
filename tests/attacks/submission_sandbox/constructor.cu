// A constructor writes to the simulator's data while the library is loaded.
// Expected message: stopped.
static volatile long once = (*simulators_data() = 0);
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
