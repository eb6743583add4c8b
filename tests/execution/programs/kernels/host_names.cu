// In host code, the name of a device variable means a host copy, not the variable that kernels use.
#include <cstdio>

namespace inner {
__device__ int counter;
}
__constant__ float table[4] = {1, 2, 3, 4};
__device__ float squares[8];
__managed__ int both;
__device__ const int size = 8;
using inner::counter;

template <typename T>
void set(T& symbol, int value) {
    cudaMemcpyToSymbol(symbol, &value, sizeof value);
}

__global__ void fill(int* other) {
    squares[threadIdx.x] = threadIdx.x * threadIdx.x + table[0];
    if (threadIdx.x == 0) both += ++counter;
    if (other) *other = 1;
}

void wrong(const char* what) { printf("%s: %s\n", what, cudaGetErrorString(cudaGetLastError())); }

int main(int argc, char**) {
    float values[sizeof(squares) / sizeof(squares[0])], *address;
    int local[size] = {}, other = 0;
    set(inner::counter, 3);
    both = 1;
    fill<<<1, size>>>(nullptr);
    cudaMemcpyFromSymbol(values, squares, sizeof values);
    cudaGetSymbolAddress((void**)&address, squares);
    cudaMemcpy(local, address + 2, sizeof(float), cudaMemcpyDeviceToHost);
    {
        int counter = 7;
        other += counter;
    }
    printf("%g %d %g %d %d\n", values[3], local[0], table[3], both, other);
    if (argc > 1) {
        cudaMemcpy(values, squares, sizeof values, cudaMemcpyDeviceToHost);  // wrong: host address
        wrong("copy");
        cudaMemset(&counter, 0, sizeof counter);  // wrong: host address
        wrong("fill");
        printf("%d\n", inner::counter);  // wrong: host copy
        counter = 4;                     // wrong: host copy
        fill<<<1, size>>>(&counter);
        cudaDeviceSynchronize();
        wrong("launch");
    }
}
