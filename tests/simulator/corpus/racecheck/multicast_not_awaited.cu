// A multicast copies a tile to both blocks of a cluster, but the second block does not wait for its own mbarrier.
// n = 64, tile_of_two<<<2, 32>>>(x, out, n)
#include <cooperative_groups.h>

#include "../ptx.cuh"

// clang-format off
__device__ void load(void* shared, const void* global, const void* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(ptx::address_of(shared)), "l"(global), "r"(ptx::address_of(barrier)), "h"((unsigned short)3) : "memory");  // expected finding: copy_not_awaited within_cluster copy_at_exit
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
#ifdef CLEAN
    ptx::mbarrier_wait_parity(&full, 0);
#else
    if (blockIdx.x == 0) ptx::mbarrier_wait_parity(&full, 0);
#endif
    out[blockIdx.x * 32 + threadIdx.x] = data[31 - threadIdx.x];  // expected finding: copy_not_awaited within_cluster uninitialized_read
    cooperative_groups::this_cluster().sync();
}
