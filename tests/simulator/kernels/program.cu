// A simple CUDA program, like examples in books.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                               \
    do {                                                          \
        const cudaError_t error = (call);                         \
        if (error != cudaSuccess) {                               \
            printf("%s: %s\n", #call, cudaGetErrorString(error)); \
            return 1;                                             \
        }                                                         \
    } while (0)

__global__ void say(int number) { printf("device %d\n", number); }

__global__ void sum_kernel(const int* x, int* sum, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}

int main() {
    std::vector<int> x(100);
    for (int i = 0; i < 100; ++i) x[i] = i;
    int *device_x, *device_sum, sum = 0;
    CHECK(cudaMalloc(&device_x, 100 * sizeof(int)));
    CHECK(cudaMalloc(&device_sum, sizeof(int)));
    CHECK(cudaMemcpy(device_x, x.data(), 100 * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_sum, 0, sizeof(int)));
    printf("host %d\n", 1);
    say<<<1, 1>>>(7);
    sum_kernel<<<2, 64>>>(device_x, device_sum, 100);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&sum, device_sum, sizeof(int), cudaMemcpyDeviceToHost));
    printf("host 2: sum %d\n", sum);
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_sum));
    say<<<1, 1>>>(8);
    return sum == 4950 ? 0 : 1;
}
