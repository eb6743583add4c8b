// wgmma: who may touch its accumulators and its operands in shared memory, and when.
//
// Accumulators are variables of a thread whose addresses the product has, so accesses to them are seen: all with g++, those
// that clang++ takes for accesses to what others may access with that. What changed without being seen shows in the values. What a product
// reads in shared memory is noted piece by piece (16 bytes), with the number of the product and the warps that read it; in the
// shadow cells stands only that there is such a note. A later write is ordered if each of those warps has waited for that
// product, or a later one, and the writer comes after one of the lanes that waited.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// Variables side by side.
struct AccumulatorRun {
    uintptr_t begin, end;
    uint32_t* values;     // as they were given back, or at the last fence after that
    const void* product;  // the last one that took them
    const void* touched;  // where the thread has read or written them since, without a fence; null: nowhere
    Access touch;
    bool taken;  // not given back yet
    bool loads;  // not accumulators of wgmma: tcgen05.ld fills them
};

// The accumulators of a thread, now and before.
struct WatchedRegisters {
    Growable<AccumulatorRun> runs;
    bool fenced;  // the thread has executed wgmma.fence
};
void free_registers(WatchedRegisters* registers);

// What stands for the reads of a cell that wgmma has read: no thread's epoch, and no set's in shared memory.
inline Epoch operand_mark(const BlockState& block) {
    return Epoch(block.serial, Epoch::time_pending).with_sharing(many_blocks);
}
inline bool is_operand_mark(Epoch reads) { return reads.pending() && reads.sharing() == many_blocks; }

// Whether the thread's write to shared memory is not ordered after a product that reads there; then one lane that reads.
bool overtakes_product(const ThreadState& thread, uintptr_t address, Epoch* reader);

void forget_products(BlockState& block);

}  // namespace sim::checks
