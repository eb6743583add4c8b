// Clusters: a block's position in its cluster, and the block whose shared memory holds an address.
#include "sim/cluster.h"

#include <stdio.h>

#include "misuse.h"
#include "sim/shared.h"

namespace sim {

bool has_clusters() noexcept { return current_thread && current_thread->block->launch->has_clusters; }

dim3 cluster_dimensions() noexcept { return current_thread ? current_thread->block->launch->cluster : dim3(0, 0, 0); }

uint3 cluster_index() noexcept { return current_thread ? current_thread->block->cluster->index : uint3{0, 0, 0}; }

dim3 grid_in_clusters() noexcept {
    return current_thread ? static_cast<Grid*>(current_thread->block->launch)->clusters : dim3(0, 0, 0);
}

uint3 block_index_in_cluster() noexcept {
    return current_thread ? current_thread->block->index_in_cluster : uint3{0, 0, 0};
}

unsigned block_rank() noexcept { return current_thread ? current_thread->block->rank : 0; }

unsigned cluster_size() noexcept { return current_thread ? current_thread->block->cluster->size : 0; }

void require_clusters(Site site, unsigned x, unsigned y, unsigned z) {
    Thread* self = current_thread;
    if (!self) return;
    dim3 have = self->block->launch->cluster;
    if (have.x == x && have.y == y && have.z == z) return;
    self->call_address = __builtin_return_address(0);
    misused(*self, site,
            "the kernel's __cluster_dims__ were unknown at the launch: launch the kernel by name, or with "
            "cudaLaunchKernelEx and cudaLaunchAttributeClusterDimension");
}

Block* shared_owner(const Block& block, const void* address) {
    const Cluster& cluster = *block.cluster;
    for (unsigned rank = 0; rank < cluster.size; ++rank)
        if (is_shared_of(*cluster.blocks[rank], address)) return cluster.blocks[rank];
    return nullptr;
}

void* map_shared_rank(Site site, const void* shared, unsigned rank) {
    Thread* self = current_thread;
    if (!self) return nullptr;
    self->call_address = __builtin_return_address(0);
    const Cluster& cluster = *self->block->cluster;
    const Block* owner = shared_owner(*self->block, shared);
    if (!owner) misused(*self, site, "mapa and map_shared_rank require an address in shared memory");
    if (rank >= cluster.size) {
        static thread_local char text[100];
        snprintf(text, sizeof text, "invalid block rank %u: the cluster has %u blocks", rank, cluster.size);
        misused(*self, site, text);
    }
    return cluster.blocks[rank]->shared + (static_cast<const char*>(shared) - owner->shared);
}

unsigned shared_rank(const void* shared) {
    if (!current_thread) return 0;
    const Block* owner = shared_owner(*current_thread->block, shared);
    return owner ? owner->rank : 0;
}

bool is_cluster_shared(const void* generic) {
    return current_thread && shared_owner(*current_thread->block, generic) != nullptr;
}

}  // namespace sim
