// Part of sim/ptx.h: mbarriers, bulk copies, and other instructions of Hopper's asynchronous kernels.
#pragma once

#include "sim/cluster.h"
#include "sim/mbarrier.h"
#include "sim/tensor_copy.h"
#include "sim/wgmma.h"

namespace sim {
namespace ptx {

template <typename Space, typename A>
SIM_INLINE void mbarrier_init(A object, In<uint32_t> count, Site site = SIM_CALLER) {
    ::sim::mbarrier_init(site, Space::pointer(object), count);
}
template <typename Space, typename A>
SIM_INLINE void mbarrier_inval(A object, Site site = SIM_CALLER) {
    ::sim::mbarrier_invalidate(site, Space::pointer(object));
}
template <typename Space, bool RELEASES, bool DROPS, typename D, typename A>
SIM_INLINE void mbarrier_arrive(D& state, A object, In<uint32_t> count = 1u, Site site = SIM_CALLER) {
    put(state, ::sim::mbarrier_arrive(site, Space::pointer(object), Arrival{RELEASES, DROPS}, count, 0));
}
template <typename Space, bool RELEASES, bool DROPS, typename D, typename A>
SIM_INLINE void mbarrier_arrive_expect_tx(D& state, A object, In<uint32_t> bytes, Site site = SIM_CALLER) {
    put(state, ::sim::mbarrier_arrive(site, Space::pointer(object), Arrival{RELEASES, DROPS}, 1, bytes));
}
template <typename Space, typename A>
SIM_INLINE void mbarrier_expect_tx(A object, In<uint32_t> bytes, Site site = SIM_CALLER) {
    ::sim::mbarrier_expect_bytes(site, Space::pointer(object), bytes);
}
template <typename Space, typename A>
SIM_INLINE void mbarrier_complete_tx(A object, In<uint32_t> bytes, Site site = SIM_CALLER) {
    ::sim::mbarrier_complete_bytes(site, Space::pointer(object), bytes);
}
// test_wait and try_wait: both let other threads run if the phase is not complete. try_wait's suspend-time hint is
// ignored.
template <typename Space, bool ACQUIRES, typename D, typename A>
SIM_INLINE void mbarrier_wait(D& complete, A object, In<uint64_t> state, In<uint32_t> = 0u, Site site = SIM_CALLER) {
    put(complete, ::sim::mbarrier_test_state(site, Space::pointer(object), state, ACQUIRES));
}
template <typename Space, bool ACQUIRES, typename D, typename A>
SIM_INLINE void mbarrier_wait_parity(D& complete, A object, In<uint32_t> parity, In<uint32_t> = 0u,
                                     Site site = SIM_CALLER) {
    put(complete, ::sim::mbarrier_test_parity(site, Space::pointer(object), parity, ACQUIRES));
}
template <typename D>
SIM_INLINE void mbarrier_pending_count(D& count, In<uint64_t> state) {
    put(count, ::sim::mbarrier_pending_count(state));
}

template <typename Space, bool COUNTED, typename A>
SIM_INLINE void cp_async_mbarrier_arrive(A object, Site site = SIM_CALLER) {
    ::sim::async_copy_arrive(site, Space::pointer(object), COUNTED);
}

// The last argument is the cache policy of the form with .L2::cache_hint. It is ignored.
template <typename S, typename G, typename A>
SIM_INLINE void cp_async_bulk_load(S shared, G global, In<uint32_t> bytes, A mbarrier, In<uint64_t> = 0ull,
                                   Site site = SIM_CALLER) {
    ::sim::bulk_load(site, SharedCluster::pointer(shared), Global::pointer(global), bytes,
                     SharedCluster::pointer(mbarrier));
}
// Multicast to several blocks of the cluster.
template <typename S, typename G, typename A>
SIM_INLINE void cp_async_bulk_load_multicast(S shared, G global, In<uint32_t> bytes, A mbarrier, In<uint16_t> blocks,
                                             In<uint64_t> = 0ull, Site site = SIM_CALLER) {
    ::sim::bulk_load(site, SharedCluster::pointer(shared), Global::pointer(global), bytes,
                     SharedCluster::pointer(mbarrier), multicast_to | blocks.value);
}
template <typename S, typename F, typename A>
SIM_INLINE void cp_async_bulk_shared(S shared, F from, In<uint32_t> bytes, A mbarrier, Site site = SIM_CALLER) {
    ::sim::shared_copy(site, SharedCluster::pointer(shared), Shared::pointer(from), bytes,
                       SharedCluster::pointer(mbarrier));
}
template <typename T, typename S, typename A>
SIM_INLINE void st_async(S shared, In<T> v0, A mbarrier, Site site = SIM_CALLER) {
    ::sim::async_store(site, SharedCluster::pointer(shared), &v0.value, sizeof(T), SharedCluster::pointer(mbarrier));
}
template <typename T, typename S, typename A>
SIM_INLINE void st_async(S shared, In<T> v0, In<T> v1, A mbarrier, Site site = SIM_CALLER) {
    T values[2] = {v0, v1};
    ::sim::async_store(site, SharedCluster::pointer(shared), values, sizeof values, SharedCluster::pointer(mbarrier));
}
template <typename T, typename S, typename A>
SIM_INLINE void st_async(S shared, In<T> v0, In<T> v1, In<T> v2, In<T> v3, A mbarrier, Site site = SIM_CALLER) {
    static_assert(sizeof(T) == 4, "st.async stores 16 bytes at most");
    T values[4] = {v0, v1, v2, v3};
    ::sim::async_store(site, SharedCluster::pointer(shared), values, sizeof values, SharedCluster::pointer(mbarrier));
}
template <typename G, typename S>
SIM_INLINE void cp_async_bulk_store(G global, S shared, In<uint32_t> bytes, In<uint64_t> = 0ull,
                                    Site site = SIM_CALLER) {
    ::sim::bulk_store(site, Global::pointer(global), Shared::pointer(shared), bytes);
}
template <Reduction REDUCTION, ElementType TYPE, typename G, typename S>
SIM_INLINE void cp_reduce_async_bulk(G global, S shared, In<uint32_t> bytes, In<uint64_t> = 0ull,
                                     Site site = SIM_CALLER) {
    ::sim::bulk_reduce(site, Global::pointer(global), Shared::pointer(shared), bytes, REDUCTION, TYPE);
}

// The coordinates {x, y} of a tensor operand [map, {x, y}].
template <unsigned N>
struct Coordinates {
    int32_t at[N];
};
template <typename... T>
SIM_INLINE Coordinates<sizeof...(T)> coordinates(T... value) {
    return {{static_cast<int32_t>(In<uint32_t>(value).value)...}};
}
// PAIR: the mbarrier may be that of the other block of the CTA pair (cta_group::2).
template <unsigned DIMENSIONS, bool PAIR = false, typename S, typename M, unsigned N, typename A>
SIM_INLINE void cp_async_bulk_tensor_load(S shared, M map, Coordinates<N> box, A mbarrier, In<uint64_t> = 0ull,
                                          Site site = SIM_CALLER) {
    static_assert(N == DIMENSIONS, "this tensor copy takes as many coordinates as it has dimensions");
    ::sim::tensor_load(site, SharedCluster::pointer(shared), Generic::pointer(map), N, box.at,
                       SharedCluster::pointer(mbarrier), PAIR ? barrier_in_pair : 0);
}
template <unsigned DIMENSIONS, typename S, typename M, unsigned N, typename A>
SIM_INLINE void cp_async_bulk_tensor_load_multicast(S shared, M map, Coordinates<N> box, A mbarrier,
                                                    In<uint16_t> blocks, In<uint64_t> = 0ull, Site site = SIM_CALLER) {
    static_assert(N == DIMENSIONS, "this tensor copy takes as many coordinates as it has dimensions");
    ::sim::tensor_load(site, SharedCluster::pointer(shared), Generic::pointer(map), N, box.at,
                       SharedCluster::pointer(mbarrier), multicast_to | blocks.value);
}
template <unsigned DIMENSIONS, Reduction REDUCTION, typename M, unsigned N, typename S>
SIM_INLINE void cp_async_bulk_tensor_store(M map, Coordinates<N> box, S shared, In<uint64_t> = 0ull,
                                           Site site = SIM_CALLER) {
    static_assert(N == DIMENSIONS, "this tensor copy takes as many coordinates as it has dimensions");
    ::sim::tensor_store(site, Generic::pointer(map), N, box.at, Shared::pointer(shared), REDUCTION);
}
template <unsigned DIMENSIONS, typename M, unsigned N>
SIM_INLINE void cp_async_bulk_prefetch_tensor(M map, Coordinates<N>, In<uint64_t> = 0ull, Site site = SIM_CALLER) {
    static_assert(N == DIMENSIONS, "this tensor copy takes as many coordinates as it has dimensions");
    ::sim::tensor_prefetch(site, Generic::pointer(map), N);
}
template <typename M>
SIM_INLINE void prefetch_tensormap(M map, Site site = SIM_CALLER) {
    ::sim::tensor_map_prefetch(site, Generic::pointer(map));
}
// Only checks the address. The fence has no other effect, because the host's writes to a map are always visible and
// kernels cannot change maps.
template <typename M>
SIM_INLINE void fence_proxy_tensormap(M map, In<uint32_t>) {
    Generic::pointer(map);
}

SIM_INLINE void cp_async_bulk_commit_group() { ::sim::bulk_commit(); }
template <bool READS_ONLY>
SIM_INLINE void cp_async_bulk_wait_group(In<uint32_t> groups) {
    ::sim::bulk_wait(groups, READS_ONLY);
}

SIM_INLINE void fence_proxy_async() { ::sim::proxy_fence(); }
// Makes initialized mbarriers visible to the other blocks of a cluster.
SIM_INLINE void fence_mbarrier_init() {
    if (cluster_size() > 1) ::sim::fence(Scope::cluster);
}
SIM_INLINE void griddepcontrol_wait() { ::sim::wait_for_grid_before(); }
// Has no effect, because in the simulator the next grid begins only after this one has ended.
SIM_INLINE void griddepcontrol_launch_dependents() {}
template <uint32_t REGISTERS>
SIM_INLINE void setmaxnreg(Site site = SIM_CALLER) {
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 256,
                  "setmaxnreg takes a multiple of 8 from 24 to 256");
    ::sim::set_max_registers(site, REGISTERS);
}

// wgmma.mma_async: scale-d, then a, b and the accumulators, which are variables that stay pending until the wait for
// the group. Immediate operands that a form does not have are omitted.
template <unsigned N, Element D, Element A, Element B, bool SATURATES, int SCALE_A = 1, int SCALE_B = 1,
          int TRANSPOSE_A = 0, int TRANSPOSE_B = 0>
struct WgmmaForm {
    static_assert((SCALE_A == 1 || SCALE_A == -1) && (SCALE_B == 1 || SCALE_B == -1),
                  "imm-scale-a and imm-scale-b of wgmma.mma_async are 1 or -1");
    static_assert((TRANSPOSE_A == 0 || TRANSPOSE_A == 1) && (TRANSPOSE_B == 0 || TRANSPOSE_B == 1),
                  "imm-trans-a and imm-trans-b of wgmma.mma_async are 0 or 1");

    static constexpr Wgmma kind(bool a_in_registers) {
        return {N, D, A, B, a_in_registers, SCALE_A < 0, SCALE_B < 0, TRANSPOSE_A != 0, TRANSPOSE_B != 0, SATURATES};
    }
    template <typename... R>
    static constexpr void check() {
        static_assert(sizeof...(R) == kind(false).registers(),
                      "wgmma.mma_async of this shape has another number of accumulators");
        static_assert(((sizeof(R) == 4) && ...), "an accumulator of wgmma.mma_async is a register of 32 bits");
    }
    template <typename... R>
    static SIM_INLINE void from_shared(Site site, bool adds, In<uint64_t> a, In<uint64_t> b, R&... accumulators) {
        check<R...>();
        ::sim::wgmma(site, kind(false), a, 0, b, adds, static_cast<void*>(&accumulators)...);
    }
    template <typename... R>
    static SIM_INLINE void from_registers(Site site, bool adds, In<uint32_t> a0, In<uint32_t> a1, In<uint32_t> a2,
                                          In<uint32_t> a3, In<uint64_t> b, R&... accumulators) {
        check<R...>();
        ::sim::wgmma(site, kind(true), two_words(a0, a1), two_words(a2, a3), b, adds,
                     static_cast<void*>(&accumulators)...);
    }
};
SIM_INLINE void wgmma_fence(Site site = SIM_CALLER) { ::sim::wgmma_fence(site); }
SIM_INLINE void wgmma_commit_group(Site site = SIM_CALLER) { ::sim::wgmma_commit(site); }
SIM_INLINE void wgmma_wait_group(In<uint32_t> groups, Site site = SIM_CALLER) { ::sim::wgmma_wait(site, groups); }

// Prefetches have no effect. But an address of the wrong state space is a compile-time error.
template <typename Space, typename A>
SIM_INLINE void prefetch(A address) {
    Space::pointer(address);
}
template <typename G>
SIM_INLINE void prefetch_bytes(G global, In<uint32_t>, In<uint64_t> = 0ull) {
    Global::pointer(global);
}
template <typename D>
SIM_INLINE void createpolicy(D& policy, double = 1) {
    put(policy, uint64_t(0));
}

}  // namespace ptx
}  // namespace sim
