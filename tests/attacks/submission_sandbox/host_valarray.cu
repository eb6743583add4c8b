// The launcher reads device memory by the constructor of std::valarray.
// Expected finding: host_access.
#include <valarray>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    std::valarray<float> values(x, n);
    volatile float read = values[0] + values[n - 1];
    (void)read;
}
