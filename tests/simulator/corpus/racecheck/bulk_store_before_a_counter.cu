// A block announces its bulk store by a counter, but its thread has waited only until the store has read its source.
// n = 128 elements
#include <cuda/atomic>

#include "../ptx.cuh"

__device__ float doubled[64];

__global__ void hand_over(const float* x, float* out, unsigned* stored) {
    __shared__ __align__(16) float data[64];
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*stored);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 2 * x[threadIdx.x];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::bulk_store(doubled, data, sizeof(data));  // expected finding: copy_not_awaited
#ifdef CLEAN
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
            counter.fetch_add(1, cuda::std::memory_order_release);
        }
        out[threadIdx.x] = 0;
    } else {
        if (threadIdx.x == 0)
            while (counter.load(cuda::std::memory_order_acquire) == 0) {
            }
        __syncthreads();
        out[64 + threadIdx.x] = doubled[threadIdx.x];  // expected finding: copy_not_awaited
    }
}

__device__ unsigned blocks_that_stored;

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    unsigned* stored;
    cudaGetSymbolAddress((void**)&stored, blocks_that_stored);
    cudaMemsetAsync(stored, 0, sizeof(unsigned), stream);
    hand_over<<<2, 64, 0, stream>>>(x, out, stored);
}
