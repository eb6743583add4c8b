// Shadow cells of global memory when several workers run blocks of one launch.
//
// A block may read what no other block writes, and write what no other block accesses. Then, whatever order the blocks
// ran in, the shadow cells are as if they had run one after another:
//
//   written   by one block alone: the block owns the cell and continues as if it were the only one.
//   read      by several blocks: the cell holds what the first of them in block order would leave, and that others
//             read it as well. The thread that first widened the set may differ. Only a race within the same launch
//             would need it, and there is none, as follows.
//   else      two blocks conflict. Each first access of a block to a cell is made under a lock, so the later block
//             sees the conflict in the cell before it accesses the memory; the launch is rolled back
//             (runtime/block_order.h).
//
// Findings, and everything that orders blocks, also cause a rollback. So no other block has seen what was written here,
// and restoring the old contents, in any order, undoes it.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// A granule that a block was the first to write, as it was before.
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
// in_block_order() for a caller that may hold a lock of a cell.
void in_block_order_unlocked(const char* what);
// Keeps what was written, or undoes it.
void keep_written(WorkerState& worker);
void undo_written(WorkerState& worker);

}  // namespace sim::checks
