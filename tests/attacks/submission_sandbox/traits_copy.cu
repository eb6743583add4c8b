// A kernel reads past the end of its input by std::char_traits::copy.
// Expected finding: out_of_bounds.
#include <string>
__host__ __device__ float read(const float* x, int i) {
    float values[20];
    std::char_traits<char>::copy(reinterpret_cast<char*>(values), reinterpret_cast<const char*>(x),
                                 sizeof(float) * (i >= 0 ? 20 : 1));
    return values[i >= 0 ? 19 : 0];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
