// A bulk copy is in flight at a grid barrier. Afterwards one thread waits for the copy, and sets a flag by a relaxed
// store, which orders nothing. The other threads read the data.
// n = 128 elements
#include <cooperative_groups.h>
#include <cuda/atomic>

#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    __shared__ unsigned complete;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> flag(complete);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        flag.store(0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
        ptx::bulk_load(data, x, sizeof(data), &full);  // expected finding: copy_not_awaited
    }
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) {
        ptx::mbarrier_wait_parity(&full, 0);
#ifdef CLEAN
        __threadfence_block();
#endif
        flag.store(1, cuda::std::memory_order_relaxed);
    }
    while (flag.load(cuda::std::memory_order_relaxed) == 0) {
    }
#ifdef CLEAN
    __threadfence_block();
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: copy_not_awaited
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {&x, &out, &n};
    cudaLaunchCooperativeKernel(tile, dim3(1), dim3(128), arguments, 0, stream);
}
