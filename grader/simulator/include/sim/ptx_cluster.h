// Part of sim/ptx.h: thread block clusters.
#pragma once

#include "sim/cluster.h"

namespace sim {
namespace ptx {

template <bool RELEASES>
SIM_INLINE void barrier_cluster_arrive(Site site = SIM_CALLER) {
    ::sim::cluster_arrive(site, RELEASES);
}
SIM_INLINE void barrier_cluster_wait(Site site = SIM_CALLER) { ::sim::cluster_wait(site); }

// mapa: an address in the shared memory of the block with that rank, as a shared-window offset or a generic pointer.
template <typename Space, typename T, typename D, typename A>
SIM_INLINE void mapa(D& d, A address, In<uint32_t> rank, Site site = SIM_CALLER) {
    void* mapped = ::sim::map_shared_rank(site, Space::pointer(address), rank);
    if constexpr (std::is_same<Space, SharedCluster>::value) {
        put(d, static_cast<T>(shared_window_offset(mapped)));
    } else {
        put(d, static_cast<T>(reinterpret_cast<uintptr_t>(mapped)));
    }
}
template <typename Space, typename D, typename A>
SIM_INLINE void getctarank(D& d, A address) {
    put(d, static_cast<uint32_t>(::sim::shared_rank(Space::pointer(address))));
}
SIM_INLINE uint32_t sreg_is_explicit_cluster() { return has_clusters(); }
SIM_INLINE uint32_t sreg_cluster_ctarank() { return block_rank(); }
SIM_INLINE uint32_t sreg_cluster_nctarank() { return cluster_size(); }
SIM_INLINE uint3 sreg_cluster_ctaid() { return block_index_in_cluster(); }
SIM_INLINE dim3 sreg_cluster_nctaid() { return cluster_dimensions(); }
SIM_INLINE uint3 sreg_clusterid() { return cluster_index(); }
SIM_INLINE dim3 sreg_nclusterid() { return grid_in_clusters(); }

}  // namespace ptx
}  // namespace sim
