// A kernel copies the input to pinned memory. The launcher reads it there as a structure passed by value.
// Expected finding: host_copies.
struct Row {
    float values[20];
};
__attribute__((noinline)) static float last(Row row) { return row.values[19]; }
static float (*volatile chosen)(Row) = last;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    float* pinned;
    cudaMallocHost(reinterpret_cast<void**>(&pinned), 4096);
    reward(x, pinned, n, stream);
    cudaStreamSynchronize(stream);
    if (chosen(*reinterpret_cast<const Row*>(pinned)) == 1e30f) reward(out, out, n, stream);
    reward(x, out, n, stream);
    cudaFreeHost(pinned);
}
