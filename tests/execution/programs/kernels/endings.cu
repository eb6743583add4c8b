// Produces one finding, then ends in the way that the first argument names.
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void one_too_many(int* x, int n) {
    if (threadIdx.x <= n) x[threadIdx.x] = 1;
}

__global__ void forever(int* x) {
    for (long long i = 0; i < 1000000000000; ++i) x[0] += i;
}

int main(int argc, const char** argv) {
    int* x;
    cudaMalloc(&x, 8 * sizeof(int));
    cudaMemset(x, 0, 8 * sizeof(int));
    one_too_many<<<1, 32>>>(x, 8);
    cudaDeviceSynchronize();
    const char* how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "assert")) assert(argc == 1);
    if (!strcmp(how, "crash")) *reinterpret_cast<volatile int*>(8) = 1;
    if (!strcmp(how, "interrupt")) raise(SIGINT);
    if (!strcmp(how, "hang")) forever<<<1, 1>>>(x);
    cudaFree(x);
}
