// A TMA load reads a tile of device memory of which only some rows were written.
// n = 256 elements
#include "../ptx.cuh"

__global__ void fill(float* scratch, int n) {
    if (threadIdx.x < n) scratch[threadIdx.x] = 1;
}

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::tensor_load(tile, &map, 0, &full, 1024);  // expected finding: uninitialized_read
    __syncthreads();
    ptx::mbarrier_wait_parity(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMalloc(&scratch, n * sizeof(float));
#ifdef CLEAN
    fill<<<1, 256, 0, stream>>>(scratch, n);
#else
    fill<<<1, 256, 0, stream>>>(scratch, n - 32);
#endif
    copy<<<1, 256, 0, stream>>>(ptx::make_tensor_map(scratch, 8), out);
    cudaFree(scratch);
}
