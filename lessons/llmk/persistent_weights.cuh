// Day 16's persistent kernel: one thread loads a block's weights of all phases to a ring in shared memory.
//
// Weights depend on nothing, so the thread runs as far ahead as the ring allows, even while the other threads wait. The
// ring is as large as shared memory allows, so that global memory stays busy meanwhile. But only some of its stages may
// be in flight at a time: more requests than the memory can serve only queue up, and delay the
// words that blocks exchange.
#pragma once

#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/persistent_work.cuh"
#include "llmk/shared_address.cuh"

namespace llmk::persistent {

// Weights are used once: evict them from the L2 cache first, before words, parameters, keys and values.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes, uint64_t* barrier) {
    asm volatile(
        "{ .reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
        "policy; }" ::"r"(llmk::shared_address(to)),
        "l"(from), "r"(bytes), "r"(llmk::shared_address(barrier))
        : "memory");
}

// Load all tiles with one thread, one copy per stage, as far ahead as the ring allows, with `flying` stages in flight.
template <typename T>
__device__ void ask_for_weights(const Shared& shared, const T* weights, int works) {
    Turn next, oldest;
    int flying = 0;
    for (int i = 0; i < works; ++i) {
        const Work work = shared.works[i];
        const T* from = weights + work.weights;
        for (int tile = 0; tile < work.tiles; tile += kWarps) {
            const int elements = (min(kWarps, work.tiles - tile) >> work.shift) * work.vectors * 8;
            const unsigned bytes = static_cast<unsigned>(elements * sizeof(T));
            if (flying < shared.flying) {
                ++flying;
            } else {
                llmk::mbarrier_wait_parity(shared.full + oldest.place, oldest.parity);
                oldest.next(shared.slots);
            }
            llmk::mbarrier_wait_parity(shared.empty + next.place, next.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(shared.full + next.place, bytes);
            copy_bulk(shared.ring + next.place * shared.slot_bytes, from, bytes, shared.full + next.place);
            from += elements;
            next.next(shared.slots);
        }
    }
}

}  // namespace llmk::persistent
