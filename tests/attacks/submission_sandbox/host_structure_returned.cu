// The launcher calls a function that returns a structure, and the structure is stored in device memory.
// Expected finding: host_access.
struct Row {
    float values[20];
};
__attribute__((noinline)) static Row row(float value) { return {{value, value, value, value}}; }
static Row (*volatile chosen)(float) = row;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    *reinterpret_cast<Row*>(out) = chosen(n);
    reward(x, out, n, stream);
}
