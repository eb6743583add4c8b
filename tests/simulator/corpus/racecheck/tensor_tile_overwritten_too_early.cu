// The next tile is loaded while threads may still read the previous one, because a barrier is missing.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long full[2];
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full[0], sizeof(tile));
    __syncthreads();
    ptx::mbarrier_wait_parity(&full[0], 0);
    const float first = tile[255 - threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
#ifdef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full[1], sizeof(tile));  // expected finding: within_warp within_block copy_not_awaited
    __syncthreads();
    ptx::mbarrier_wait_parity(&full[1], 0);
    out[threadIdx.x] = first + tile[threadIdx.x];
}
