// A copy uses a tensor map that was never encoded.
// n = 256 elements
#include "../ptx.cuh"

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, 1024);  // expected finding: instruction_misused
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    CUtensorMap map = {};
#ifdef CLEAN
    map = ptx::make_tensor_map(x, 8);
#endif
    copy<<<1, 256, 0, stream>>>(map, out);
}
