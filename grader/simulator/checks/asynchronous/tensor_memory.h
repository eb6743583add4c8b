// Tensor memory (tcgen05): who reads and writes its lanes and columns, what is complete, and what fences order.
//
// Cells are 16 lanes of a column. Each remembers the last operation that wrote it and the last that read it: a load or a
// store of a warp, complete when the warp has waited, or a product or copy that a thread began, complete to those who come
// after a thread that waited for a phase of an mbarrier on which that thread committed it. Whoever then uses the cell must
// know of that at its last tcgen05.fence::after_thread_sync, and of a load or store a tcgen05.fence::before_thread_sync must
// stand behind the wait. What products read in shared memory is remembered piece by piece (16 bytes), as for wgmma.
#pragma once

#include "checks/asynchronous/mbarriers.h"
#include "checks/core/state.h"

namespace sim::checks {

// Of a thread that executed tcgen05.fence or waited for products.
struct TensorThread {
    ProxyFence after;           // what it knew at its last tcgen05.fence::after_thread_sync
    bool fenced;                // there was one
    Growable<uint32_t> before;  // its times at tcgen05.fence::before_thread_sync, never falling
    const ThreadState* issuer;  // whose operations it waited for last, and up to which
    uint64_t number;
    Epoch waited;  // when that was
};
void free_tensor_thread(TensorThread* thread);

// The thread has waited for an mbarrier on which `issuer` committed its operations up to a number.
void note_awaited(ThreadState& thread, const ThreadState& issuer, uint64_t number);

// Whether the thread's write to shared memory is not ordered after a tcgen05 operation that reads there; then by whom.
bool overtakes_tensor_operation(const ThreadState& thread, BlockState& owner, uintptr_t address, Epoch* reader);

// All threads of the block have exited.
void tensor_memory_at_exit(Block& block);
void forget_tensor_memory(BlockState& block);

}  // namespace sim::checks
