// The checks of wgmma: accesses to its accumulators, and to its operands in shared memory, while it is pending.
//
// Accumulators are local variables whose addresses the kernel passes to the wgmma. Instrumented accesses to them are
// checked: with g++ all accesses, with clang++ those to variables that escape. Other changes are found by comparing the
// values.
//
// Reads of shared memory are recorded per piece (16 bytes), with the number of the wgmma and the warps that read it.
// The shadow cell only says that such a record exists. A later write is ordered if the writer is ordered after a lane of
// the warpgroup that has waited for that wgmma, or a later one: the wgmma is then complete for all of its warps.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// Accumulator variables of a thread that are adjacent in memory.
struct AccumulatorRun {
    uintptr_t begin, end;
    uint32_t* values;     // values at the end of the last wgmma, or at a later fence
    const void* wgmma;    // the last wgmma that used them
    const void* touched;  // the thread's last access to them without a later fence; null: none
    Access touch;
    bool taken;  // a wgmma is pending
    bool loads;  // destination of tcgen05.ld, not accumulators of wgmma
};

// The accumulators of a thread, of pending and of completed wgmma.
struct WatchedRegisters {
    Growable<AccumulatorRun> runs;
    bool fenced;  // the thread has executed wgmma.fence
};
void free_registers(WatchedRegisters* registers);

// The epoch that marks a cell as read by wgmma. Neither a thread nor a reader set in shared memory has this epoch.
inline Epoch operand_mark(const BlockState& block) {
    return Epoch(block.serial, Epoch::time_pending).with_sharing(many_blocks);
}
inline bool is_operand_mark(Epoch reads) { return reads.pending() && reads.sharing() == many_blocks; }

// Returns whether a wgmma that reads this shared memory may still run when the thread writes to it. If so, *reader is
// one lane of a warp that reads.
bool overtakes_wgmma(const ThreadState& thread, uintptr_t address, Epoch* reader);

void forget_wgmma(BlockState& block);

}  // namespace sim::checks
