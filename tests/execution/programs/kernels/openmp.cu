// OpenMP in host code: loops, and launches from several threads. With an argument, all threads use the same memory.
#include <cstdio>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#else
#error this file needs -Xcompiler -fopenmp
#endif

int sum_of(const std::vector<int>& values);  // openmp_sum.cpp

constexpr int n = 1000, threads = 4, rounds = 20;

__global__ void add(int* x, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] += value;
}

int main(int argc, char**) {
    std::vector<int> host(n);
#pragma omp parallel for
    for (int i = 0; i < n; ++i) host[i] = i;
    int* parts;
    cudaMalloc(&parts, threads * n * sizeof(int));
    int results[threads];
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();
        int* part = parts + (argc > 1 ? 0 : thread * n);
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaMemcpyAsync(part, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream);
        for (int round = 0; round < rounds; ++round) add<<<8, 128, 0, stream>>>(part, n, thread);
        cudaMemcpyAsync(&results[thread], part + n - 1, sizeof(int), cudaMemcpyDeviceToHost, stream);
#pragma omp barrier  // no thread waits for its stream before all have launched
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
    printf("%d %d %d %d %d\n", sum_of(host), results[0], results[1], results[2], results[3]);
    cudaFree(parts);
}
