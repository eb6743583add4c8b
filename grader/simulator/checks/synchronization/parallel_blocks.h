// Shadow cells of global memory when several workers run blocks of one launch.
//
// A launch may run on several workers if each cell is written by no block, or accessed by only one. Then the shadow
// cells end up as if the blocks had run one after another:
//
//   written   by one block alone: the block owns the cell and continues as if it were the only one.
//   read      by several blocks: the cell records the reads of the block that is first in block order, and that other
//             blocks read it as well. The recorded second reader may differ from that of a run in block order. This is
//             harmless: only findings about races within this launch name it, and a race causes a rollback.
//   else      two blocks conflict. The first access of a block to a cell is made under a lock. So the later block sees
//             the conflict before it accesses the memory, and the launch is rolled back (runtime/block_order.h).
//
// Findings and operations that order blocks also cause a rollback. So no block has read another block's writes, and the
// rollback may restore the old contents in any order.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// The old contents of a granule and its cell, stored before a block's first write to it.
struct Overwritten {
    ShadowCell* cell;
    Epoch write;
    uintptr_t address;
    uint32_t data;
    uint16_t write_site;
    uint8_t bytes;
};

void read_cells_of_several(ThreadState& thread, AccessSite& site, uintptr_t address, unsigned size_log2);
void write_cells_of_several(ThreadState& thread, AccessSite& site, uintptr_t address, unsigned size_log2);
// Releases the caller's cell lock, if it holds one, and calls in_block_order() (runtime/block_order.h), which waits for
// earlier blocks or rolls the launch back.
void in_block_order_unlocked(const char* what);
// keep_written drops the old contents; undo_written restores them.
void keep_written(WorkerState& worker);
void undo_written(WorkerState& worker);

}  // namespace sim::checks
