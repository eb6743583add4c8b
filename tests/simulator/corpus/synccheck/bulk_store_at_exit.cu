// The block exits before its bulk store has read the shared memory.
// n = 128 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void store(void* global, const void* shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(address_of(shared)), "r"(bytes) : "memory");  // expected finding: copy_at_exit
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// clang-format on

__global__ void twice(const float* x, float* out, int n) {
    __shared__ __align__(16) float tile[128];
    tile[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, tile, sizeof(tile));
#ifdef CLEAN
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { twice<<<1, 128, 0, stream>>>(x, out, n); }
