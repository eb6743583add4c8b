// Global memory, when several workers run blocks of one launch.
//
// A block may read what no other writes, and write what no other touches. Whatever order the blocks ran in, the shadow cells
// are then as if they had run one after another:
//
//   written   by one block alone: the cell is that block's, which goes on as if it were the only one.
//   read      by several: the cell holds what the first of them, in the order of blocks, leaves in it alone, and that others
//             came after. Which thread of those was the first to widen the set is not what it would be. Only a race within
//             the same launch would ask for that, and there is none, as what follows shows.
//   else      two blocks conflict. Whoever comes second sees it in the cell before it touches the memory, as each first
//             access of a block to a cell is made under a lock; and the launch is taken back (runtime/block_order.h).
//
// So are all findings, and all that orders blocks. Hence what is written here was not seen by anybody else, and putting back
// what was there, in whatever order, undoes it.
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
// in_block_order() for what may be found out with a lock of a cell held.
void in_block_order_unlocked(const char* what);
// What was written is in force, or is undone.
void keep_written(WorkerState& worker);
void undo_written(WorkerState& worker);

}  // namespace sim::checks
