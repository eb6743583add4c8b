// A kernel reads past the end of its input by __builtin___memmove_chk.
// Expected finding: out_of_bounds.
__device__ float read(const float* x, int i) {
    float values[20];
    __builtin___memmove_chk(values, x, sizeof(float) * (i >= 0 ? 20 : 1), sizeof values);
    return values[i >= 0 ? 19 : 0];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
