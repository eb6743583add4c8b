// No stored box contains the last rows of the output.
// n = 320 elements
// expected finding: output_not_written
#include "../ptx.cuh"

__global__ void doubled(const float* x, const __grid_constant__ CUtensorMap map, int n) {
    __shared__ alignas(128) float tile[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = i < n ? 2 * x[i] : 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::tensor_store(&map, blockIdx.x * 8, tile);
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    doubled<<<(n + 255) / 256, 256, 0, stream>>>(x, ptx::make_tensor_map(out, n / 32), n);
#else
    doubled<<<n / 256, 256, 0, stream>>>(x, ptx::make_tensor_map(out, n / 32), n);
#endif
}
