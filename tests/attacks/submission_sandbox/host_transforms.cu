// The launcher computes the result by std::transform and writes it to device memory.
// Expected finding: host_access.
#include <algorithm>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaStreamSynchronize(stream);
    std::transform(x, x + n, out, [](float value) { return 2.0f * value; });
}
