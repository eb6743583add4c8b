// A complete program without Python and torch. To build it for this machine's GPU and run it:
//
//   nvcc -O3 -std=c++17 -arch=native -I lessons lessons/day15_performance/program.cu -o program && ./program
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "llmk/reduce.cuh"

// Every CUDA call returns an error code; a kernel launch does not, so check cudaGetLastError() after it.
#define CHECK(call)                                                                          \
    do {                                                                                     \
        const cudaError_t error = (call);                                                    \
        if (error != cudaSuccess) {                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
            return 1;                                                                        \
        }                                                                                    \
    } while (0)

__global__ void square_sums(const float* x, float* sum, int n) {
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i] * x[i];
    mine = llmk::block_sum(mine);
    if (threadIdx.x == 0) atomicAdd(sum, mine);
}

int main() {
    const int n = 100000;
    std::vector<float> x(n);
    double expected = 0.0;
    for (int i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i % 17) - 8.0f;
        expected += static_cast<double>(x[i]) * x[i];
    }
    float *device_x, *device_sum, sum = 0.0f;
    CHECK(cudaMalloc(&device_x, n * sizeof(float)));
    CHECK(cudaMalloc(&device_sum, sizeof(float)));
    CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_sum, 0, sizeof(float)));
    square_sums<<<32, 256>>>(device_x, device_sum, n);
    CHECK(cudaGetLastError());       // did the launch fail?
    CHECK(cudaDeviceSynchronize());  // did the kernel fail?
    CHECK(cudaMemcpy(&sum, device_sum, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_sum));
    const bool right = std::fabs(sum - expected) <= 1e-5 * expected;
    printf("the sum of %d squares: %.0f, expected %.0f: %s\n", n, sum, expected, right ? "right" : "wrong");
    return right ? 0 : 1;
}
