// The box of a store may extend past the end of the tensor, but must not begin before it, unlike that of a load.
// n = 256, doubled<<<1, 256>>>(x, out, ptx::make_tensor_map(out, n / 32))
#include "../ptx.cuh"

__global__ void doubled(const float* x, float* out, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    tile[threadIdx.x] = 2 * x[threadIdx.x];
    if (threadIdx.x < 64) out[threadIdx.x] = tile[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        ptx::tensor_store(&map, 2, tile);
#else
        ptx::tensor_store(&map, -2, tile);  // expected finding: instruction_misused
#endif
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
