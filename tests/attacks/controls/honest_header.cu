// A correct kernel. It includes a course header for vectorized accesses.
#include "llmk/vector.cuh"

__global__ void vectorized(const float* x, float* out, int n) {
    const int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 4 <= n) {
        auto values = llmk::load_vector<4>(x + first);
#pragma unroll
        for (int j = 0; j < 4; ++j) values.set(j, 2 * values.get(j));
        llmk::store_vector(out + first, values);
    } else {
        for (int i = first; i < n; ++i) out[i] = 2 * x[i];
    }
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) vectorized<<<(n + 255) / 256, 64, 0, stream>>>(x, out, n);
}
