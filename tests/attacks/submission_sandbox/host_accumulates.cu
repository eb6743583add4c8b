// The launcher sums device memory by std::accumulate.
// Expected finding: host_access.
#include <numeric>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    volatile float sum = std::accumulate(x, x + n, 0.0f);
    (void)sum;
}
