// A kernel copies the input to a __device__ variable, which snprintf reads on the host.
// Expected finding: host_access.
#include <stdio.h>
__device__ float kept[1024];
__global__ void keep(const float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    keep<<<1, 64, 0, stream>>>(x, n);
    float* values;
    cudaGetSymbolAddress(reinterpret_cast<void**>(&values), kept);
    char bytes[8];
    snprintf(bytes, sizeof bytes, "%.4s", reinterpret_cast<const char*>(values));
    reward(x, out, n, stream);
}
