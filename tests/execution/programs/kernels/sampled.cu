// Programs of many blocks for sampled checks. The first argument chooses one, the second a block or a launch.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int blocks = 64, threads = 64;

// A race in one block, or in all of them (bad < 0).
__global__ void shift(const int* x, int* y, int bad) {
    __shared__ int tile[threads];
    tile[threadIdx.x] = x[blockIdx.x * threads + threadIdx.x];
    if (bad >= 0 && bad != blockIdx.x) __syncthreads();
    y[blockIdx.x * threads + threadIdx.x] = tile[threads - 1 - threadIdx.x];
}

// All blocks write to the same element.
__global__ void overwrite(int* y) { y[threadIdx.x] = blockIdx.x; }

__global__ void add_blocks(const int* x, int* y) { atomicAdd(y, x[blockIdx.x * threads + threadIdx.x]); }

// The last block adds what the others have written (the CUDA Programming Guide calls this a memory fence example).
__device__ unsigned ticket;
__global__ void sum(const int* x, int* partial, int* y) {
    __shared__ bool last;
    int own = __syncthreads_count(x[blockIdx.x * threads + threadIdx.x] & 1);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = own;
        __threadfence();
        last = atomicAdd(&ticket, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += partial[i];
        *y = all;
    }
}

// Each block continues where the previous one stopped.
__device__ volatile unsigned turn;
__global__ void chain(const int* x, int* y) {
    if (threadIdx.x == 0) {
        while (turn != blockIdx.x) {
        }
        __threadfence();
    }
    __syncthreads();
    int before = y[threadIdx.x];
    y[threadIdx.x] = before + x[blockIdx.x * threads + threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) turn = blockIdx.x + 1;
}

__global__ void exchange(int* all, int* y) {
    all[blockIdx.x * threads + threadIdx.x] = blockIdx.x;
    cooperative_groups::this_grid().sync();
    y[blockIdx.x * threads + threadIdx.x] = all[(gridDim.x - 1 - blockIdx.x) * threads + threadIdx.x];
}

__global__ void __cluster_dims__(4) neighbors(const int* x, int* y) {
    __shared__ int tile[threads];
    auto cluster = cooperative_groups::this_cluster();
    tile[threadIdx.x] = x[blockIdx.x * threads + threadIdx.x];
    cluster.sync();
    y[blockIdx.x * threads + threadIdx.x] = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[threadIdx.x];
    cluster.sync();
}

// A named barrier for two warps, which the checks follow thread by thread.
__global__ void pairs(const int* x, int* y) {
    __shared__ int tile[threads];
    tile[threadIdx.x] = x[blockIdx.x * threads + threadIdx.x];
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[blockIdx.x * threads + threadIdx.x] = tile[threadIdx.x ^ 32];
}

__global__ void copy(const int* x, int* y) {
    y[blockIdx.x * threads + threadIdx.x] = x[blockIdx.x * threads + threadIdx.x];
}

int main(int argc, char** argv) {
    auto is = [&](const char* name) { return !strcmp(argv[1], name); };
    int number = argc > 2 ? atoi(argv[2]) : 0;
    constexpr int count = blocks * threads;
    static int host[count];
    int *x, *y, *z;
    cudaMalloc(&x, sizeof host);
    cudaMalloc(&y, sizeof host);
    cudaMalloc(&z, sizeof host);
    for (int i = 0; i < count; ++i) host[i] = i * 7 % 31;
    if (!is("unwritten")) cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    if (!is("shift") && !is("copies") && !is("copy")) cudaMemset(y, 0, sizeof host);
    if (is("shift")) shift<<<blocks, threads>>>(x, y, number);
    if (is("launches"))
        for (int i = 0; i < 4; ++i) {
            shift<<<blocks, threads>>>(x, y, i == number ? -1 : blocks);
            copy<<<blocks, threads>>>(y, z);
        }
    if (is("overwrite")) overwrite<<<blocks, threads>>>(y);
    if (is("atomics")) add_blocks<<<blocks, threads>>>(x, y);
    if (is("sum")) sum<<<blocks, threads>>>(x, z, y);
    if (is("chain")) chain<<<blocks, threads>>>(x, y);
    if (is("clusters")) neighbors<<<blocks, threads>>>(x, y);
    if (is("pairs")) pairs<<<blocks, threads>>>(x, y);
    if (is("copies")) copy<<<blocks, threads>>>(x, z);
    if (is("copies")) copy<<<blocks, threads>>>(z, y);
    if (is("unwritten")) copy<<<blocks, threads>>>(x, y);
    if (is("grid")) {
        void* arguments[] = {&z, &y};
        cudaLaunchCooperativeKernel((void*)exchange, dim3(blocks), dim3(threads), arguments, 0, nullptr);
    }
    cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
    unsigned digest = 0;
    for (int value : host) digest = digest * 31 + value;
    printf("%u\n", digest);
    cudaFree(x);
    cudaFree(y);
    cudaFree(z);
}
