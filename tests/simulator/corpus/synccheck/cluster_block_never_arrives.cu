// One block waits for an mbarrier at which no thread arrives, so it never reaches the cluster barrier.
// n = 64 elements
#include <cooperative_groups.h>
#include <cuda_runtime.h>

__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void wait(unsigned long long* barrier) {
    // clang-format off
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)) : "memory");  // expected finding: deadlock
    // clang-format on
}

__global__ void __cluster_dims__(2, 1, 1) copy_or_wait(const float* x, float* out, int n) {
    __shared__ unsigned long long full;
    auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address_of(&full)));
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    if (cluster.block_rank() == 1) {
#ifdef CLEAN
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&full)) : "memory");
#endif
        wait(&full);
    }
    cluster.sync();  // expected finding: deadlock
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { copy_or_wait<<<2, 32, 0, stream>>>(x, out, n); }
