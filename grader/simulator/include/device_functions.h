// Small functions of device code: clocks, sleeping, traps, address spaces. Kernels get them through cuda_runtime.h.
#pragma once

#include "sim/cluster.h"
#include "sim/collective.h"
#include "sim/device.h"
#include "sim/shared.h"

#define SIM_DEVICE_INLINE inline __attribute__((always_inline))

SIM_DEVICE_INLINE long long clock64() { return ::sim::clock_cycles(); }
SIM_DEVICE_INLINE void __nanosleep(unsigned int nanoseconds) { ::sim::nanosleep(nanoseconds); }
SIM_DEVICE_INLINE void __trap() { ::sim::trap(); }
SIM_DEVICE_INLINE void __brkpt() {}
SIM_DEVICE_INLINE unsigned int __isShared(const void* pointer) { return ::sim::is_shared(pointer); }
SIM_DEVICE_INLINE unsigned int __isGlobal(const void* pointer) { return ::sim::is_global(pointer); }
SIM_DEVICE_INLINE size_t __cvta_generic_to_shared(const void* pointer) { return ::sim::shared_window_offset(pointer); }
SIM_DEVICE_INLINE void* __cvta_shared_to_generic(size_t address) {
    return ::sim::shared_window_address(static_cast<uint32_t>(address), true);
}
SIM_DEVICE_INLINE size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
SIM_DEVICE_INLINE void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }

// Clusters
SIM_DEVICE_INLINE unsigned int __isClusterShared(const void* pointer) { return ::sim::is_cluster_shared(pointer); }
SIM_DEVICE_INLINE unsigned __clusterDimIsSpecified() { return ::sim::has_clusters(); }
SIM_DEVICE_INLINE dim3 __clusterDim() { return ::sim::cluster_dimensions(); }
SIM_DEVICE_INLINE dim3 __clusterRelativeBlockIdx() { return ::sim::block_index_in_cluster(); }
SIM_DEVICE_INLINE dim3 __clusterGridDimInClusters() { return ::sim::grid_in_clusters(); }
SIM_DEVICE_INLINE dim3 __clusterIdx() { return ::sim::cluster_index(); }
SIM_DEVICE_INLINE unsigned __clusterRelativeBlockRank() { return ::sim::block_rank(); }
SIM_DEVICE_INLINE unsigned __clusterSizeInBlocks() { return ::sim::cluster_size(); }
SIM_DEVICE_INLINE void* __cluster_map_shared_rank(const void* pointer, unsigned rank, ::sim::Site site = SIM_CALLER) {
    return ::sim::map_shared_rank(site, pointer, rank);
}
SIM_DEVICE_INLINE unsigned __cluster_query_shared_rank(const void* pointer) { return ::sim::shared_rank(pointer); }
SIM_DEVICE_INLINE void __cluster_barrier_arrive(::sim::Site site = SIM_CALLER) { ::sim::cluster_arrive(site, true); }
SIM_DEVICE_INLINE void __cluster_barrier_arrive_relaxed(::sim::Site site = SIM_CALLER) {
    ::sim::cluster_arrive(site, false);
}
SIM_DEVICE_INLINE void __cluster_barrier_wait(::sim::Site site = SIM_CALLER) { ::sim::cluster_wait(site); }
SIM_DEVICE_INLINE void __threadfence_cluster() { ::sim::fence(::sim::Scope::cluster); }

// Programmatic dependent launch (cudaLaunchAttributeProgrammaticStreamSerialization)
SIM_DEVICE_INLINE void cudaGridDependencySynchronize() { ::sim::wait_for_grid_before(); }
SIM_DEVICE_INLINE void cudaTriggerProgrammaticLaunchCompletion() {}

#undef SIM_DEVICE_INLINE
