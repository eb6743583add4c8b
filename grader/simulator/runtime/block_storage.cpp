// The memory of blocks: threads, warps and shared memory, reused from block to block and from launch to launch.
#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

namespace sim {

namespace {

void release(BlockStorage* block) {
    unmap_shared_memory(*block);
    free(block->threads);
    free(block->warps);
    free(block);
}

// Initializes what depends only on the block's shape: done once for all blocks of that shape.
bool fill_in(BlockStorage& block, dim3 shape) {
    unsigned count = shape.x * shape.y * shape.z;
    unsigned warps = (count + lanes_per_warp - 1) / lanes_per_warp;
    if (count > block.capacity) {
        free(block.threads);
        free(block.warps);
        // Allocate whole warps, because a collective may read lanes that do not exist.
        block.threads = static_cast<Thread*>(calloc(warps * lanes_per_warp, sizeof(Thread)));
        block.warps = static_cast<Warp*>(calloc(warps, sizeof(Warp)));
        block.capacity = block.threads && block.warps ? warps * lanes_per_warp : 0;
        if (block.capacity == 0) return false;
    }
    block.shape = shape;
    block.thread_count = count;
    block.warp_count = warps;
    uint3 index = {0, 0, 0};
    for (unsigned i = 0; i < count; ++i) {
        Thread& thread = block.threads[i];
        thread.warp = &block.warps[i / lanes_per_warp];
        thread.block = &block;
        thread.index = index;
        thread.linear = static_cast<uint16_t>(i);
        thread.lane = static_cast<uint8_t>(i % lanes_per_warp);
        if (++index.x == shape.x) {
            index.x = 0;
            if (++index.y == shape.y) {
                index.y = 0;
                ++index.z;
            }
        }
    }
    for (unsigned w = 0; w < warps; ++w) {
        Warp& warp = block.warps[w];
        unsigned rest = count - w * lanes_per_warp;
        warp.threads = block.threads + w * lanes_per_warp;
        warp.block = &block;
        warp.index = w;
        warp.existing = rest >= lanes_per_warp ? ~0u : (1u << rest) - 1;
    }
    return true;
}

}  // namespace

BlockStorage* take_storage(Worker& worker) {
    BlockStorage* block = worker.unused;
    if (block) {
        worker.unused = block->next;
    } else {
        block = static_cast<BlockStorage*>(calloc(1, sizeof(BlockStorage)));
        if (!block) return nullptr;
        if (!map_shared_memory(*block)) {
            free(block);
            return nullptr;
        }
        block->slot = worker.slots++;
        block->worker = &worker;
    }
    dim3 shape = worker.grid->block;
    bool same = block->capacity && block->shape.x == shape.x && block->shape.y == shape.y && block->shape.z == shape.z;
    if (!same && !fill_in(*block, shape)) {
        release(block);
        return nullptr;
    }
    return block;
}

void give_storage(Worker& worker, BlockStorage* block) {
    block->next = worker.unused;
    worker.unused = block;
}

}  // namespace sim
