// The second file of the program of parts.cu, compiled only by the host compiler.
#include <cuda_runtime.h>

#include <vector>

#include "parts.h"

Buffer::Buffer(int n) {
    std::vector<float> ones(n, 1.0f);
    cudaMalloc(&data, n * sizeof(float));
    cudaMemcpy(data, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice);
}

Buffer::~Buffer() { cudaFree(data); }

float Buffer::first() const {
    float value;
    cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}
