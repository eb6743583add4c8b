// A kernel reads past the end of its input by a vector type of the compiler.
// Expected finding: out_of_bounds.
typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
__device__ float read(const float* x, int) {
    Vector values = *reinterpret_cast<const Vector*>(x);
    return values[15];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
