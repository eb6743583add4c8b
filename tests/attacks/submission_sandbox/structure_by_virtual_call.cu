// A kernel reads past the end of its input by a structure passed by value through a virtual call.
// Expected finding: out_of_bounds.
struct Row {
    float values[20];
};
struct Reader {
    __device__ virtual float read(Row row) const { return row.values[0]; }
};
struct Last : Reader {
    __device__ float read(Row row) const override { return row.values[19]; }
};
__device__ float read(const float* x, int i) {
    Reader one;
    Last other;
    const Reader* chosen = i >= 0 ? &other : &one;
    return chosen->read(*reinterpret_cast<const Row*>(x));
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
