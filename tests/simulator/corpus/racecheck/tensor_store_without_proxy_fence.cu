// Threads write the source of a tensor store. Without a proxy fence the tensor store may not see the writes.
// n = 256, doubled<<<1, 256>>>(x, ptx::make_tensor_map(out, 8))
#include "../ptx.cuh"

__global__ void doubled(const float* x, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    tile[threadIdx.x] = 2 * x[threadIdx.x];  // expected finding: missing_proxy_fence
#ifdef CLEAN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::tensor_store(&map, 0, tile);  // expected finding: missing_proxy_fence
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
