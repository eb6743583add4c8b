// The tensor map declares 8 rows for a matrix of 7.
// n = 224 elements
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out, int n) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, sizeof(tile));  // expected finding: out_of_bounds
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    if (threadIdx.x < n) out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    copy<<<1, 256, 0, stream>>>(ptx::make_tensor_map(x, 7), out, n);
#else
    copy<<<1, 256, 0, stream>>>(ptx::make_tensor_map(x, 8), out, n);
#endif
}
