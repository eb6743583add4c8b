/* The host side of a program in C. twice.cu has the kernel. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int twice(float* x, int n, cudaStream_t stream);

int main(void) {
    struct cudaDeviceProp properties;
    enum cudaMemcpyKind back = cudaMemcpyDeviceToHost;
    float host[4] = {1, 2, 3, 4}, *device;
    struct float4 four = {1, 2, 3, 4};
    cudaLaunchConfig_t config;
    cudaStream_t stream;
    cudaEvent_t event;
    dim3 grid = {2, 1, 1};

    config.gridDim = grid;
    cudaGetDeviceProperties(&properties, 0);
    if (cudaMalloc((void**)&device, sizeof host) != cudaSuccess) return 1;
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, stream);
    twice(device, 4, stream);
    cudaEventRecord(event, stream);
    cudaMemcpyAsync(host, device, sizeof host, back, stream);
    cudaStreamSynchronize(stream);
    printf("%g %g %u %s\n", host[3], four.w, config.gridDim.x, cudaGetErrorName(cudaErrorInvalidValue));
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaFree(device);
    return 0;
}
