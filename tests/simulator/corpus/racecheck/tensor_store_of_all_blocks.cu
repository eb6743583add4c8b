// All blocks store to one tile, although their results must be added.
// n = 256 elements
#include "../ptx.cuh"

__global__ void sum(const float* x, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    tile[threadIdx.x] = x[threadIdx.x] + blockIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %1}], [%2];" ::"l"(&map), "r"(0),
                     "r"(ptx::address_of(tile))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
        ptx::tensor_store(&map, 0, tile);  // expected finding: between_blocks copy_not_awaited
#endif
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, n * sizeof(float), stream);
    sum<<<3, 256, 0, stream>>>(x, ptx::make_tensor_map(out, 8));
}
