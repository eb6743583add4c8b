// A kernel reads past the end of its input by a structure passed by value through a function pointer.
// Expected finding: out_of_bounds.
struct Row {
    float values[20];
};
__device__ __noinline__ float last(Row row) { return row.values[19]; }
__device__ __noinline__ float first(Row row) { return row.values[0]; }
__device__ float read(const float* x, int i) {
    float (*chosen)(Row) = i >= 0 ? last : first;
    return chosen(*reinterpret_cast<const Row*>(x));
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
