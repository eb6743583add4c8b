// A kernel reads past the end of its input by __builtin___memcpy_chk.
// Expected finding: out_of_bounds.
__host__ __device__ float read(const float* x, int i) {
    float values[20];
    __builtin___memcpy_chk(values, x, sizeof(float) * (i >= 0 ? 20 : 1), size_t(-1));
    return values[i >= 0 ? 19 : 0];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
