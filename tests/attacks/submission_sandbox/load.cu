// A launcher reads the simulator's data.
// Expected finding: not_its_memory.
static long seen;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    seen = *simulators_data();
}
