// A tile is read before the phase of its mbarrier completes.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        ptx::tensor_load(tile, &map, 0, &full, sizeof(tile));  // expected finding: within_warp within_block copy_not_awaited copy_at_exit
    __syncthreads();
#ifdef CLEAN
    ptx::mbarrier_wait_parity(&full, 0);
#endif
    out[threadIdx.x] = tile[threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}
