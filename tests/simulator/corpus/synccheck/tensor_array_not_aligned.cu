// A shared array is declared without the alignment that a TMA tile needs.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
#ifdef CLEAN
    __shared__ alignas(128) float tile[512];
#else
    __shared__ float tile[512];
#endif
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, 1024);  // expected finding: instruction_misused
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
