// A kernel reads past the end of its input when it passes a structure by value to a member function. It calls the
// function through a pointer.
// Expected finding: out_of_bounds.
struct Row {
    float values[20];
};
struct Reader {
    __device__ float last(Row row) const { return row.values[19]; }
    __device__ float first(Row row) const { return row.values[0]; }
};
__device__ float read(const float* x, int i) {
    float (Reader::*chosen)(Row) const = i >= 0 ? &Reader::last : &Reader::first;
    return (Reader().*chosen)(*reinterpret_cast<const Row*>(x));
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
