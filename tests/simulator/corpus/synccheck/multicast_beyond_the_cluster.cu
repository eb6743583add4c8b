// The mask of a multicast has four blocks, but the cluster has two.
// n = 64 elements
#include <cooperative_groups.h>
#include <cuda_runtime.h>

// clang-format off
#ifdef CLEAN
#define MASK 3
#else
#define MASK 15
#endif
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void load(void* shared, const void* global, const void* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(address_of(shared)), "l"(global), "r"(address_of(barrier)), "h"((unsigned short)MASK) : "memory");  // expected finding: instruction_misused
}
__device__ void wait(unsigned long long* barrier) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)) : "memory");
}
// clang-format on

__global__ void __cluster_dims__(2, 1, 1) tile_of_two(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(address_of(&full)) : "memory");
    }
    cooperative_groups::this_cluster().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) load(data, x, &full);
    wait(&full);
    out[blockIdx.x * 32 + threadIdx.x] = data[31 - threadIdx.x];
    cooperative_groups::this_cluster().sync();
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile_of_two<<<2, 32, 0, stream>>>(x, out, n); }
