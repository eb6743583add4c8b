// The launcher reads device memory as a structure passed by value, which g++ copies unchecked.
// Expected finding: host_access.
struct Row {
    float values[20];
};
__attribute__((noinline)) static float last(Row row) { return row.values[19]; }
static float (*volatile chosen)(Row) = last;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile float read = chosen(*reinterpret_cast<const Row*>(x));
    (void)read;
}
