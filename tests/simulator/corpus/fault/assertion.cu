// An assertion fails for the last element.
#include <cassert>

__global__ void copy(const float* x, float* out, int n, int limit) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    assert(i < limit);  // expected finding: assertion
    out[i] = x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    copy<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, n);
#else
    copy<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, n - 1);
#endif
}
