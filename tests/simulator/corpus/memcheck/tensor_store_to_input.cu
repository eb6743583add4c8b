// A tensor store uses the tensor map of the input.
// n = 256 elements
#include "../ptx.cuh"

__global__ void doubled(const float* x, float* out, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    tile[threadIdx.x] = out[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::tensor_store(&map, 0, tile);  // expected finding: write_to_const
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    float* to = nullptr;
    cudaMalloc(&to, n * sizeof(float));
    doubled<<<1, 256, 0, stream>>>(x, out, ptx::make_tensor_map(to, 8));
    cudaFree(to);
#else
    doubled<<<1, 256, 0, stream>>>(x, out, ptx::make_tensor_map(x, 8));
#endif
}
