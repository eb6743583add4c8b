// Thread block clusters: a block's position in its cluster, the cluster barrier, and the shared memory of its blocks.
//
// In a launch without clusters each block is a cluster of its own.
#pragma once

#include <stdint.h>

#include "sim/barrier.h"
#include "sim/dim.h"

#pragma GCC visibility push(default)
namespace sim {

[[gnu::const]] bool has_clusters() noexcept;             // %is_explicit_cluster
[[gnu::const]] dim3 cluster_dimensions() noexcept;       // %cluster_nctaid, in blocks
[[gnu::const]] uint3 cluster_index() noexcept;           // %clusterid
[[gnu::const]] dim3 grid_in_clusters() noexcept;         // %nclusterid
[[gnu::const]] uint3 block_index_in_cluster() noexcept;  // %cluster_ctaid
[[gnu::const]] unsigned block_rank() noexcept;           // %cluster_ctarank, x fastest
[[gnu::const]] unsigned cluster_size() noexcept;         // %cluster_nctarank

// Called by each thread of a kernel with __cluster_dims__. Checks that the grid was launched with clusters of this
// size, because the launching code may not see the attribute.
void require_clusters(Site site, unsigned x, unsigned y = 1, unsigned z = 1);

// barrier.cluster: a wait ends when all threads of the cluster that have not exited have arrived. `releases`: the
// thread's earlier accesses are ordered before the accesses of waiting threads after their wait.
void cluster_arrive(Site site, bool releases);
void cluster_wait(Site site);
void cluster_barrier(Site site);  // arrive and wait

// mapa: returns the address at the same offset as `shared`, in the shared memory of the block with that rank.
void* map_shared_rank(Site site, const void* shared, unsigned rank);
unsigned shared_rank(const void* shared);  // getctarank: rank of the block whose shared memory holds the address
bool is_cluster_shared(const void* generic);

}  // namespace sim
#pragma GCC visibility pop
