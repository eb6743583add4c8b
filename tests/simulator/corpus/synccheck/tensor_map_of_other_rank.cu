// A copy with three dimensions uses a tensor map with two.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
#ifdef CLEAN
        ptx::tensor_load(tile, &map, 0, &full, 1024);
#else
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_arrive_expect_tx(&full, 1024);
        // clang-format off
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2}], [%3];" ::"r"(ptx::address_of(tile)), "l"(&map), "r"(0), "r"(ptx::address_of(&full)) : "memory");  // expected finding: instruction_misused
        // clang-format on
#endif
    }
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
