// Only 5 of the box's 8 rows are inside the tensor; the others are filled with zeros. The bytes of all 8 rows arrive at
// the mbarrier, which expects fewer.
// n = 160, copy<<<1, 256>>>(ptx::make_tensor_map(x, 5), out, n)
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out, int n) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long full;
#ifdef CLEAN
    const unsigned bytes = sizeof(tile);
#else
    const unsigned bytes = n * sizeof(float);
#endif
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, bytes);
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);  // expected finding: deadlock
    if (threadIdx.x < n) out[threadIdx.x] = tile[threadIdx.x];
}
