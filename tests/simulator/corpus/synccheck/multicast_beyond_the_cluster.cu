// The mask of a multicast has four blocks, but the cluster has two.
// n = 64, tile_of_two<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

#include "../ptx.cuh"

// clang-format off
#ifdef CLEAN
#define MASK 3
#else
#define MASK 15
#endif
__device__ void load(void* shared, const void* global, const void* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(ptx::address_of(shared)), "l"(global), "r"(ptx::address_of(barrier)), "h"((unsigned short)MASK) : "memory");  // expected finding: instruction_misused
}
// clang-format on

__global__ void __cluster_dims__(2, 1, 1) tile_of_two(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_arrive_expect_tx(&full, 128);
    }
    cooperative_groups::this_cluster().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) load(data, x, &full);
    ptx::mbarrier_wait_parity(&full, 0);
    out[blockIdx.x * 32 + threadIdx.x] = data[31 - threadIdx.x];
    cooperative_groups::this_cluster().sync();
}
