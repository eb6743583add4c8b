// Asynchronous stores to another block of the cluster are read there before a thread waits for the mbarrier.
// n = 64 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ unsigned mapped(const void* shared, unsigned rank) {
    unsigned result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address_of(shared)), "r"(rank));
    return result;
}
__device__ void store(const void* shared, float value, const void* barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(mapped(shared, 1)), "f"(value), "r"(mapped(barrier, 1)) : "memory");  // expected finding: copy_not_awaited within_cluster copy_at_exit
}
__device__ void wait(unsigned long long* barrier) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)) : "memory");
}
// clang-format on

__global__ void __cluster_dims__(2, 1, 1) hand_to_neighbor(const float* x, float* out, int n) {
    __shared__ float data[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(address_of(&full)) : "memory");
    }
    data[threadIdx.x] = 0;
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x * 32 + threadIdx.x] = 0;
    if (blockIdx.x % 2 == 0) {
        store(&data[threadIdx.x], x[threadIdx.x], &full);
    } else {
#ifdef CLEAN
        wait(&full);
#endif
        out[blockIdx.x * 32 + threadIdx.x] = data[31 - threadIdx.x];  // expected finding: copy_not_awaited within_cluster
    }
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { hand_to_neighbor<<<2, 32, 0, stream>>>(x, out, n); }
