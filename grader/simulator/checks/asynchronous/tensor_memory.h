// Tensor memory (tcgen05): which operations read and write its lanes and columns, which are complete, and what fences
// order.
//
// A cell is 16 lanes of a column. It remembers the last operation that wrote it and the last that read it. Each must be
// complete before another thread uses the cell:
// - A load or store is complete when its warp has waited. The warp must then execute tcgen05.fence::before_thread_sync.
// - An MMA or copy is complete for a thread that has waited for the mbarrier on which the issuing thread committed it,
//   and for all threads that have synchronized with that thread since.
// The thread that uses the cell must synchronize with this completion, and then execute
// tcgen05.fence::after_thread_sync. Reads of shared memory by MMAs are recorded per piece (16 bytes), as for wgmma.
#pragma once

#include "checks/asynchronous/mbarriers.h"
#include "checks/core/state.h"

namespace sim::checks {

// State of a thread that executed tcgen05.fence or waited for an MMA.
struct TensorThread {
    ProxyFence after;           // the thread's knowledge at its last tcgen05.fence::after_thread_sync
    bool fenced;                // the thread has executed tcgen05.fence::after_thread_sync
    Growable<uint32_t> before;  // times of its tcgen05.fence::before_thread_sync, in ascending order
    const ThreadState* issuer;  // the thread waited last for this issuer's operations up to `number`
    uint64_t number;
    Epoch waited;  // time of that wait
};

// The thread has waited for an mbarrier on which `issuer` committed its operations up to a number.
void note_awaited(ThreadState& thread, const ThreadState& issuer, uint64_t number);

// Returns whether a tcgen05 operation that reads this shared memory may still run when the thread writes to it. If so,
// *reader is the thread that issued it.
bool overtakes_tensor_operation(const ThreadState& thread, BlockState& owner, uintptr_t address, Epoch* reader);

// Called when all threads of the block have exited.
void tensor_memory_at_exit(Block& block);
void forget_tensor_memory(BlockState& block);

}  // namespace sim::checks
