// The launcher reads the simulator's data as a structure passed by value.
// Expected finding: not_its_memory.
struct Row {
    long values[5];
};
__attribute__((noinline)) static long last(Row row) { return row.values[4]; }
static long (*volatile chosen)(Row) = last;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile long read = chosen(*reinterpret_cast<const Row*>(const_cast<const long*>(simulators_data())));
    (void)read;
}
