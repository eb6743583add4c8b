// Barriers in shared memory that count arrivals and bytes (mbarrier, Hopper). A phase is complete when every expected
// arrival has come and every expected byte was written; then the next one begins. Who waits names the phase by its
// parity: 0 for the first, 1 for the second, 0 for the third. Day 12 derives them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/shared_address.cuh"

namespace llmk {

// One thread does this, then fence_mbarrier_init(), and then the block (or the cluster) meets.
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// New barriers are seen by the copy engine and by the other blocks of the cluster.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces bytes that copies will bring in this phase.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives at the barrier that lies at the same place in the shared memory of another block of the cluster.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint64_t* barrier, unsigned block) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(barrier)), "r"(block));
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}

// Until the phase of that parity is complete. On a barrier that was just made, parity 1 is: the phase before the first.
__device__ __forceinline__ void mbarrier_wait_parity(uint64_t* barrier, unsigned parity) {
    unsigned complete = 0;
    while (!complete) {
        asm volatile(
            "{ .reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(complete)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    }
}

// Walks round a ring of STAGES buffers: which one is next, and the parity of its phase.
template <int STAGES>
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// What ordinary stores wrote to shared memory is seen by the copy engine and the tensor cores: before they are started.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A barrier of some warps of the block, by number (1 to 15; __syncthreads has 0). Its threads: those who arrive and wait.
__device__ __forceinline__ void bar_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void bar_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// All threads of all blocks of the cluster meet.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace llmk
