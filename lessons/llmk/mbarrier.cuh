// mbarriers (Hopper): barriers in shared memory that count arrivals and bytes. A phase completes when (1) the expected
// number of arrivals has come and (2) all announced bytes have been copied; then the next phase begins. A waiting
// thread names the phase by its parity: 0 for the first phase, 1 for the second, 0 for the third. Source: PTX ISA,
// section "Parallel Synchronization and Communication Instructions: mbarrier". Day 13 derives them.
//
// `barrier` points to 8 aligned bytes of shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/shared_address.cuh"

namespace llmk {

// mbarrier.init: expect `arrivals` arrivals per phase. One thread calls it, then fence_mbarrier_init(); then the block,
// or the cluster, synchronizes.
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// fence.mbarrier_init: make initialized mbarriers visible to TMA and to the other blocks of the cluster.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive.expect_tx: arrive, and announce `bytes` that copies will bring in this phase.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// mapa and mbarrier.arrive.shared::cluster: arrive at the mbarrier at the same shared-memory offset in another block.
// `block`: its rank in the cluster.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint64_t* barrier, unsigned block) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(barrier)), "r"(block));
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}

// mbarrier.try_wait.parity in a loop: wait until the phase with this parity is complete. On a new mbarrier, parity 1
// counts as complete: it stands for the phase before the first.
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

// Position in a ring of STAGES buffers: the index of the current buffer and the parity of its phase.
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

// fence.proxy.async: make this thread's ordinary writes to shared memory visible to TMA and the tensor cores. Call it
// before starting them.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// bar.sync and bar.arrive: named barrier number `barrier` (1 to 15; __syncthreads uses 0) for some warps of the block.
// `threads` counts those that wait and those that only arrive. Source: PTX ISA, section "Parallel Synchronization and
// Communication Instructions: bar, barrier".
__device__ __forceinline__ void bar_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void bar_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// barrier.cluster.arrive and .wait: synchronize all threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace llmk
