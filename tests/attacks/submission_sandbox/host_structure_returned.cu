// The launcher writes device memory with a structure that a call returns. Says: host_access.
struct Row {
    float values[20];
};
__attribute__((noinline)) static Row row(float value) { return {{value, value, value, value}}; }
static Row (*volatile chosen)(float) = row;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    *reinterpret_cast<Row*>(out) = chosen(n);
    reward(x, out, n, stream);
}
