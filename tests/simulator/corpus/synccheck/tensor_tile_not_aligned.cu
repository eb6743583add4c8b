// A tile in shared memory is aligned to 64 bytes instead of 128.
// n = 256, copy<<<1, 256>>>(ptx::make_tensor_map(x, 8), out)
#include "../ptx.cuh"

#ifdef CLEAN
constexpr int kBefore = 32;
#else
constexpr int kBefore = 16;
#endif

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile + kBefore, &map, 0, &full, 1024);  // expected finding: instruction_misused
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = (tile + kBefore)[threadIdx.x];
}
