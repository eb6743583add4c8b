// printf writes its count of characters (%n) to the simulator's data.
// Expected finding: not_its_memory.
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    const char* volatile format = "%d%n";
    printf(format, n, simulators_data());
}
