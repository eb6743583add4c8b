// Part of sim/ptx.h: the tensor cores and the tensor memory of Blackwell.
#pragma once

#include "sim/tcgen05.h"

namespace sim {
namespace ptx {

template <bool PAIR, typename Space, typename A>
SIM_INLINE void tcgen05_alloc(A address, In<uint32_t> columns, Site site = SIM_CALLER) {
    ::sim::tensor_allocate(site, PAIR, Space::pointer(address), columns);
}
template <bool PAIR>
SIM_INLINE void tcgen05_dealloc(In<uint32_t> address, In<uint32_t> columns, Site site = SIM_CALLER) {
    ::sim::tensor_release(site, PAIR, address, columns);
}
template <bool PAIR>
SIM_INLINE void tcgen05_relinquish_alloc_permit(Site site = SIM_CALLER) {
    ::sim::tensor_relinquish_alloc_permit(site, PAIR);
}

template <bool PAIR>
SIM_INLINE void tcgen05_mma(Site site, In<uint32_t> d, In<uint64_t> a, In<uint64_t> b, In<uint32_t> instruction,
                            bool adds) {
    ::sim::tensor_multiply(site, {a, b, d, instruction, PAIR, false, adds});
}
// Executes tcgen05.mma with operand A in tensor memory.
template <bool PAIR>
SIM_INLINE void tcgen05_mma_tensor_memory(Site site, In<uint32_t> d, In<uint32_t> a, In<uint64_t> b,
                                          In<uint32_t> instruction, bool adds) {
    ::sim::tensor_multiply(site, {a.value, b, d, instruction, PAIR, true, adds});
}
template <Tcgen05Kind KIND, unsigned SCALES>
SIM_INLINE void tcgen05_mma_block_scale(Site site, In<uint32_t> d, In<uint64_t> a, In<uint64_t> b,
                                        In<uint32_t> instruction, In<uint32_t> scale_a, In<uint32_t> scale_b,
                                        bool adds) {
    ::sim::tensor_multiply(site, {a, b, d, instruction, false, false, adds, KIND, SCALES, scale_a, scale_b});
}
template <bool PAIR, unsigned BITS, bool WARPX4>
SIM_INLINE void tcgen05_cp(In<uint32_t> address, In<uint64_t> from, Site site = SIM_CALLER) {
    ::sim::tensor_copy_from_shared(site, PAIR, address, from, BITS, WARPX4);
}
template <bool PAIR, typename Space, typename A>
SIM_INLINE void tcgen05_commit(A mbarrier, Site site = SIM_CALLER) {
    ::sim::tensor_commit(site, PAIR, Space::pointer(mbarrier), false, 0);
}
template <bool PAIR, typename Space, typename A>
SIM_INLINE void tcgen05_commit_multicast(A mbarrier, In<uint16_t> blocks, Site site = SIM_CALLER) {
    ::sim::tensor_commit(site, PAIR, Space::pointer(mbarrier), true, blocks.value);
}

template <TensorShape SHAPE, unsigned REPETITIONS, typename... R>
SIM_INLINE void tcgen05_ld(Site site, In<uint32_t> address, R&... registers) {
    static_assert(sizeof...(R) == registers_of(SHAPE, REPETITIONS),
                  "tcgen05.ld of this shape has another number of registers");
    static_assert(((sizeof(R) == 4) && ...), "a register of tcgen05.ld has 32 bits");
    ::sim::tensor_load(site, SHAPE, REPETITIONS, address, static_cast<void*>(&registers)...);
}
template <TensorShape SHAPE, unsigned REPETITIONS, typename... R>
SIM_INLINE void tcgen05_st(Site site, In<uint32_t> address, R... registers) {
    static_assert(sizeof...(R) == registers_of(SHAPE, REPETITIONS),
                  "tcgen05.st of this shape has another number of registers");
    ::sim::tensor_store(site, SHAPE, REPETITIONS, address, In<uint32_t>(registers).value...);
}
SIM_INLINE void tcgen05_wait_ld(Site site = SIM_CALLER) { ::sim::tensor_wait_loaded(site); }
SIM_INLINE void tcgen05_wait_st(Site site = SIM_CALLER) { ::sim::tensor_wait_stored(site); }
SIM_INLINE void tcgen05_fence_before() { ::sim::tensor_fence_before(); }
SIM_INLINE void tcgen05_fence_after() { ::sim::tensor_fence_after(); }

}  // namespace ptx
}  // namespace sim
