// Launches one block for each multiprocessor of the device.
#include <cuda_runtime.h>

__global__ void copy(const float* x, float* out) {
    if (blockIdx.x == 0) out[threadIdx.x] = x[threadIdx.x];
}

extern "C" void fill(const float* x, float* out, cudaStream_t stream) {
    int blocks = 0;
    cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
    copy<<<blocks, 256, 0, stream>>>(x, out);
}
