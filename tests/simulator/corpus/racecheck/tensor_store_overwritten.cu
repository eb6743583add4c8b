// The next tile is written while the copy engine may still read the previous one.
// n = 512, doubled<<<1, 256>>>(x, ptx::make_tensor_map(out, 16))
#include "../ptx.cuh"

__global__ void doubled(const float* x, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    for (int row = 0; row < 16; row += 8) {
        tile[threadIdx.x] = 2 * x[32 * row + threadIdx.x];  // expected finding: copy_not_awaited
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::tensor_store(&map, row, tile);  // expected finding: copy_not_awaited
#ifdef CLEAN
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
