// A launcher writes to the simulator's data.
// Expected finding: not_its_memory.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    *simulators_data() = 0;
}
