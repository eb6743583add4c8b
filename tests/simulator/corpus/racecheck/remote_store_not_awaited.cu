// Asynchronous stores to another block of the cluster are read there before a thread waits for the mbarrier.
// n = 64, hand_to_neighbor<<<2, 32>>>(x, out, n)
#include "../ptx.cuh"

// clang-format off
__device__ unsigned mapped(const void* shared, unsigned rank) {
    unsigned result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(ptx::address_of(shared)), "r"(rank));
    return result;
}
__device__ void store(const void* shared, float value, const void* barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(mapped(shared, 1)), "f"(value), "r"(mapped(barrier, 1)) : "memory");  // expected finding: copy_not_awaited within_cluster copy_at_exit
}
// clang-format on

__global__ void __cluster_dims__(2, 1, 1) hand_to_neighbor(const float* x, float* out, int n) {
    __shared__ float data[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_arrive_expect_tx(&full, 128);
    }
    data[threadIdx.x] = 0;
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x * 32 + threadIdx.x] = 0;
    if (blockIdx.x % 2 == 0) {
        store(&data[threadIdx.x], x[threadIdx.x], &full);
    } else {
#ifdef CLEAN
        ptx::mbarrier_wait_parity(&full, 0);
#endif
        out[blockIdx.x * 32 + threadIdx.x] = data[31 - threadIdx.x];  // expected finding: copy_not_awaited within_cluster
    }
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
