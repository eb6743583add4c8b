// A kernel reads past the end of its input. The value that it reads has the compiler's built-in type _Complex float.
// Expected finding: out_of_bounds.
__device__ float read(const float* x, int) { return __imag__ * reinterpret_cast<const volatile _Complex float*>(x); }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
