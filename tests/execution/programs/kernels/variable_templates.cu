// Templates of __constant__ and __device__ variables: copies by symbol, and the bounds of each instantiation.
#include <cuda_runtime.h>

#include <cstdio>

template <typename T>
__constant__ T mask[4];

namespace inner {
template <typename T, int n = 2>
static __device__ T table[n];
}

template <typename T>
__device__ __noinline__ T read(const T* from, int i) {
    return from[i];  // may read past the end
}

template <typename T>
__global__ void sum(T* out, int i) {
    inner::table<T>[1] += 1;
    out[0] = mask<T>[3] + inner::table<T>[1] + read(inner::table<T, 3>, i);
}

template <typename T>
void run(int i) {
    T four[4] = {1, 2, 3, 4}, two[2] = {5, 6}, result, *out;
    cudaMemcpyToSymbol(mask<T>, four, sizeof four);
    cudaMemcpyToSymbol(inner::table<T>, two, sizeof two);
    cudaMalloc(&out, sizeof *out);
    sum<<<1, 1>>>(out, i);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(two, inner::table<T>, sizeof two);
    size_t bytes;
    cudaGetSymbolSize(&bytes, inner::table<T, 3>);
    printf("%g %g %zu\n", double(result), double(two[1]), bytes);
    cudaFree(out);
}

int main(int argc, char**) {
    run<float>(2);
    run<double>(argc + 1);
    return 0;
}
