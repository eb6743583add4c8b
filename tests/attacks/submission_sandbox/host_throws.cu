// The launcher throws an exception whose value is a structure read from device memory.
// Expected finding: host_access.
struct Row {
    float values[20];
};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    try {
        throw *reinterpret_cast<const Row*>(x);
    } catch (const Row& row) {
        if (row.values[0] == 1e30f) reward(x, out, n, stream);
    }
}
