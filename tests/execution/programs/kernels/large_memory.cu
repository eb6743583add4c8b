// Allocations larger than the memory of the simulated device or of this machine. argv[1] selects the case.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__global__ void touch(int* data, size_t n) {
    data[0] += 1;
    data[n - 1] += 1;
}

__global__ void touch_bytes(char* data, size_t bytes) { data[bytes - 1] += data[bytes / 2]; }

int main(int argc, char** argv) {
    const char* how = argv[1];
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    size_t bytes = properties.totalGlobalMem * 2, left, total;
    int* data = nullptr;
    cudaError_t error = cudaSuccess;
    if (strcmp(how, "managed") == 0) {
        error = cudaMallocManaged(&data, bytes);
        data[0] = data[bytes / sizeof *data - 1] = 1;
    } else if (strcmp(how, "bytes") == 0) {
        error = cudaMallocManaged(&data, bytes);
        touch_bytes<<<1, 1>>>(reinterpret_cast<char*>(data), bytes);
        cudaDeviceSynchronize();
        data[0] = data[bytes / sizeof *data - 1] = 1;
    } else if (strcmp(how, "pinned") == 0) {
        error = cudaMallocHost(&data, bytes);
        data[0] = data[bytes / sizeof *data - 1] = 1;
    } else if (strcmp(how, "too much") == 0) {
        cudaMallocManaged(&data, bytes << 10);  // more than any device has
    } else if (strcmp(how, "probe") == 0) {
        while ((error = cudaMalloc(&data, bytes)) == cudaErrorMemoryAllocation) bytes /= 2;  // handles the error
        cudaGetLastError();
        const int one = 1;
        cudaMemcpy(data, &one, sizeof one, cudaMemcpyHostToDevice);
        cudaMemcpy(data + bytes / sizeof one - 1, &one, sizeof one, cudaMemcpyHostToDevice);
    } else if (strcmp(how, "ignore") == 0) {
        cudaMalloc(&data, bytes);  // ignores the error
    } else if (strcmp(how, "set") == 0) {
        cudaMalloc(&data, bytes);  // also ignores the error
        cudaMemset(data, 0, bytes);
        return 0;
    }
    if (error != cudaSuccess) return 3;
    touch<<<1, 1>>>(data, bytes / sizeof *data);
    int last = 0;
    cudaMemcpy(&last, data + bytes / sizeof *data - 1, sizeof last, cudaMemcpyDeviceToHost);
    cudaMemGetInfo(&left, &total);
    printf("%d %d\n", last, left == total);
    if (strcmp(how, "pinned") == 0)
        cudaFreeHost(data);
    else
        cudaFree(data);
    return 0;
}
