// Threads write the source of a bulk store. Without a proxy fence the bulk store may not see the writes.
// n = 128 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void store(void* global, const void* shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(address_of(shared)), "r"(bytes) : "memory");  // expected finding: missing_proxy_fence
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    data[threadIdx.x] = 2 * x[threadIdx.x];  // expected finding: missing_proxy_fence
#ifdef CLEAN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, data, sizeof(data));
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 128, 0, stream>>>(x, out, n); }
