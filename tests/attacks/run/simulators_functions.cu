// Calls functions of the simulator that only translated code may call. Defense: names.
static long data;
static sim::RegisterGlobal whatever("data", &data, 1 << 20, sim::GlobalKind::device);
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
