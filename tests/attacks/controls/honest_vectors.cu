// A correct kernel of another design. Its launcher uses the C++ standard library.
#include <stdexcept>
#include <vector>

__global__ void strided(const float* x, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] + x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    std::vector<int> sizes{n};
    try {
        if (sizes.at(0) > 0) strided<<<2, 32, 0, stream>>>(x, out, sizes.at(0));
    } catch (const std::exception&) {
    }
}
