// Two blocks add to one tile by bulk reductions and wait for them. A third block reads the tile in the same launch.
// n = 192 elements
#include "../ptx.cuh"

__global__ void sum(const float* x, float* total) {
    __shared__ __align__(16) float data[64];
    data[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_add(total, data, sizeof(data));
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void sum_and_read(const float* x, float* total, float* out) {
    __shared__ __align__(16) float data[64];
    const unsigned own = blockIdx.x * 64 + threadIdx.x;
    if (blockIdx.x == 2) {
        out[own] = total[threadIdx.x];  // expected finding: between_blocks
        return;
    }
    out[own] = data[threadIdx.x] = x[own];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_add(total, data, sizeof(data));  // expected finding: between_blocks
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void read(const float* total, float* out) { out[blockIdx.x * 64 + threadIdx.x] = total[threadIdx.x]; }

__device__ float sums[64];

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* total;
    cudaGetSymbolAddress((void**)&total, sums);
    cudaMemsetAsync(total, 0, sizeof(sums), stream);
#ifdef CLEAN
    sum<<<2, 64, 0, stream>>>(x, total);
    read<<<3, 64, 0, stream>>>(total, out);
#else
    sum_and_read<<<3, 64, 0, stream>>>(x, total, out);
#endif
}
