// Without __grid_constant__ each thread has its own copy of the map, which the copy engine cannot access.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

#ifdef CLEAN
__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
#else
__global__ void copy(const CUtensorMap map, float* out) {
#endif
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, 1024);  // expected finding: instruction_misused
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
