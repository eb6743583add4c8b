// What the runtime tells the checks. CHECKS implements these functions; events_default.cpp holds weak ones that do
// nothing, so that the runtime links and runs without any check.
//
// Events about a running grid come only while `launch.checks_enabled`; errors (sync_error, fault, refused) and memory
// always. They are called on the fiber of the thread that caused them unless the comment says otherwise; an
// implementation may call kill_launch from any of those.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/atomics.h"
#include "sim/wgmma.h"
#include "tensor_type.h"
#include "thread.h"

namespace sim {
struct BulkCopy;
struct TensorOperation;
struct Work;
}  // namespace sim

namespace sim::events {

// --- the order of operations ---
// What follows, a launch or what the host reads and writes, belongs to this operation of a stream. In `host_function` the
// host's own accesses do.
void work_begin(const Work& work, bool host_function);
void work_end();
// The host has handed an operation to a stream, which is not being captured, or has launched a graph.
void submitted();
void graph_instantiated();

// --- blocks of several workers (runtime/block_order.h) ---
// Why the launch, which has not begun, can have only one worker with checks; null when it may have several.
const char* needs_one_worker(const Launch& launch);
// It was meant to have several, and goes on with one. Only its first cluster has run, or does.
void fall_back_to_one_worker(Launch& launch);
// In place of launch_end: nothing of it has happened. On the host's stack.
void launch_taken_back(Launch& launch);

// --- the life of a grid (launch_* on the host's stack; block_* on a worker's) ---
void launch_begin(Launch& launch);
void launch_end(Launch& launch);
void block_begin(Block& block);
void block_end(Block& block);
void thread_begin(Thread& thread);
void thread_exit(Thread& thread);

// --- synchronization ---
// All threads that take part have arrived; called once, by the last of them, before any goes on. participants[w] are
// the lanes of warp w. `barrier` is 0 for __syncthreads.
void barrier(Block& block, unsigned barrier, const unsigned* participants);
// One thread's bar.arrive: it does not wait, but what it did before is ordered before those who do.
void barrier_arrive(Thread& thread, unsigned barrier);
// __syncwarp: orders memory among the participating lanes (mask less the exited ones).
void syncwarp(Warp& warp, unsigned mask, unsigned participants);
// Any other warp intrinsic: lanes met, but memory is not ordered.
void warp_collective(Warp& warp, Wait kind, unsigned mask, unsigned participants);
// A product on the tensor cores, once for its warp: additions and multiplications. `address` is the kernel's return address.
void tensor_product(Warp& warp, TensorType type, unsigned operations, const void* address);
// A wgmma of a warpgroup begins; its operands in shared memory may be read from now on.
struct WarpgroupProduct {
    Wgmma kind;
    uint64_t a, b;    // descriptors
    uint64_t number;  // in its warpgroup, from 1
    const void* address;
};
void product(Warp* warps, const WarpgroupProduct& product);
// The warp has waited for all products up to this number. Its accumulators are not given back yet.
void products_done(Warp& warp, uint64_t number);
void product_fence(Warp& warp);
// Variables of the thread that are accumulators: before a product takes them, where none has them already, and after their
// values are there.
void accumulators_taken(Thread& thread, uint32_t* const* variables, unsigned count);
void accumulators_given(Thread& thread, uint32_t* const* variables, unsigned count);
// The block has ended before the warp waited for a product.
void product_at_exit(Warp& warp, const void* address);
// Tensor memory (runtime/tensor_memory.h). Columns are a block's from here on: its address goes to shared memory.
void tensor_allocated(Thread& thread, const void* address_goes_to, unsigned first, unsigned count);
void tensor_released(Thread& thread, unsigned first, unsigned count);
// A rectangle of lanes and columns.
struct TensorRange {
    unsigned lane, lanes, column, columns;
};
// tcgen05.ld or st begins; the warp has waited for all of one kind.
void tensor_transfer(Warp& warp, const TensorRange& range, bool stores, const void* address);
void tensor_waited(Warp& warp, bool stores);
// Variables of the thread that a load will fill: until the wait for it nobody reads or writes them.
void tensor_registers_taken(Thread& thread, uint32_t* const* variables, unsigned count);
void tensor_registers_given(Thread& thread, uint32_t* const* variables, unsigned count);
// tcgen05.mma or cp begins.
void tensor_operation(Thread& thread, const TensorOperation& operation);
// An operation with that number will arrive at the mbarrier when all that the thread has begun is complete.
void tensor_committed(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address);
// tcgen05.fence, before_thread_sync or after_thread_sync.
void tensor_fence(Thread& thread, bool after);
// griddepcontrol.wait: the launch before this one in its stream is over to what the thread does from here on.
void grid_dependency_waited(Thread& thread);
// All threads of the grid have arrived.
void grid_sync(Launch& launch);

// One thread arrives at the cluster's barrier (`releases`: what it did before is published to who waits; else only what
// its fences have); all threads have, on the fiber of the last; one has waited.
void cluster_arrive(Thread& thread, bool releases);
void cluster_complete(Cluster& cluster);
void cluster_waited(Thread& thread);

// Before the operation. `address` is the kernel's return address.
void atomic(Thread& thread, const void* data, size_t bytes, AtomicOp op, Scope scope, const void* address);
// After it: whether memory changed (a failed compare-and-swap changes nothing).
void atomic_done(Thread& thread, const void* data, size_t bytes, AtomicOp op, bool changed);
void fence(Thread& thread, Scope scope);

// Asynchronous operations (runtime/async_operations.h). `address` is the kernel's return address.
void async_copy(Thread& thread, void* shared, const void* global, size_t bytes, size_t zero_fill, const void* address);
void async_commit(Thread& thread);
// The copies that this wait completed, oldest first, are about to be performed.
void async_wait(Thread& thread, unsigned groups_that_may_be_pending);
// A bulk copy begins: from shared to global memory in a group of the thread, or the other way, to an mbarrier.
void bulk_store(Thread& thread, const BulkCopy& copy, const void* address);
void bulk_commit(Thread& thread);
void bulk_wait(Thread& thread, unsigned groups_that_may_be_pending, bool reads_only);
// `reads`: its source, else a value in registers, or what another copy of the same multicast has read.
void bulk_load(Thread& thread, const BulkCopy& copy, bool reads, Mbarrier& barrier, uint64_t number,
               const void* address);
// cp.async.mbarrier.arrive: the thread's earlier cp.async will arrive at the mbarrier.
void async_arrive(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address);
// An operation with that number has been performed. Not on a fiber of its thread.
void mbarrier_operation_done(Thread& thread, Mbarrier& barrier, uint64_t number);
void mbarrier_begin(Thread& thread, Mbarrier& barrier, const void* address);
// By mbarrier.inval, or without a thread when its block has ended.
void mbarrier_end(Thread* thread, Mbarrier& barrier, const void* address);
// Before the thread arrives, expects bytes or completes some; `releases`: what it did before is published to who waits.
void mbarrier_arrive(Thread& thread, Mbarrier& barrier, bool releases, const void* address);
void mbarrier_complete(Mbarrier& barrier);                               // a phase; not on the fiber of a thread
void mbarrier_waits(Thread& thread, const Mbarrier& barrier);            // begins to, or goes on
void mbarrier_waited(Thread& thread, Mbarrier& barrier, bool acquires);  // and found a phase complete
void proxy_fence(Thread& thread);
// All threads of the block have exited; what is under way is about to be performed.
void copies_at_exit(Block& block);

// --- errors that the runtime itself notices ---
enum class SyncError : uint8_t {
    deadlock,              // no thread can run; thread is null, the waiting ones say where in wait_* and call_address
    barrier_sites_differ,  // threads met at different __syncthreads
    own_lane_not_in_mask,
    collectives_differ,          // lanes of one mask at different intrinsics or places
    shuffle_from_inactive_lane,  // reads from a lane that takes no part: undefined, but harmless if never used
    barrier_threads_invalid,     // bar.sync with a count that is no multiple of 32 or exceeds the block
    grid_sync_not_cooperative,
    mbarrier_not_initialized,
    instruction_misused,  // in a way that PTX leaves undefined: the detail says how
};
void sync_error(SyncError kind, Block& block, Thread* thread, const char* detail);

// A thread gives back what the device's heap did not give it, or has again already.
void bad_free(const void* pointer, const void* address);

enum class FaultKind : uint8_t {
    illegal_address,
    misaligned_address,
    division_by_zero,
    illegal_instruction,
    stack_overflow,
    infinite_loop,
    out_of_memory,  // of the simulator itself
    trap,
    assertion,
    shared_memory_exceeded,  // static arrays beyond 48 KB, or static + dynamic beyond what was allowed
    device_exception,        // a C++ exception left the kernel
};
struct Fault {
    FaultKind kind;
    Thread* thread;       // may be null for an infinite loop
    const void* data;     // the address that was accessed
    const void* address;  // of the instruction, or the return address of a call into the simulator
    const char* detail;   // a sentence, or null
    bool data_known;      // else the processor did not say which address: one that no pointer can have, or misaligned
};
// Whether a thread that polls this address waits for the host: its memory, too, in which the launch has changed nothing there.
bool waits_for_host(const void* address);
// On the host's stack: the launch is over. launch_end follows.
void fault(Launch& launch, const Fault& fault);

// A launch or a runtime call that failed, with CUDA's error and why, in words. `launch` is null for other calls.
void refused(const Launch* launch, const char* call, int cuda_error, const char* why, const void* address = nullptr);

// A host call that waits for an event which has not been recorded: CUDA lets it pass.
void waits_for_nothing(const char* call, const void* address);

// Code of a submission was kept from memory, or from a function, that is not its own: submission_sandbox.h.
void not_its_own(const char* kind, const void* data, size_t bytes, bool write, const void* code);

// The host's work on the default stream, though the launcher was given another.
void default_stream_used(const char* what, const void* address);

// --- memory ---
enum class MemoryKind : uint8_t { tensor, device, async, managed, pinned_host, heap };
struct Allocation {
    MemoryKind kind;
    char* base;
    size_t bytes;
    const char* name;   // of a tensor, else null
    const char* dtype;  // "float32", ... of a tensor, else null
    int ndim;
    const int64_t* shape;
    const void* address;  // who called cudaMalloc
};
void allocation(const Allocation& allocation);
void release(void* base, size_t bytes, const void* address);
// Bytes that the host (cudaMemset, cudaMemcpy, sim_tensor_write) wrote.
void host_write(const void* data, size_t bytes);
void host_read(const void* data, size_t bytes);
// A copy of a stream wrote to memory of the host that is not pinned.
void copied_to_host(const void* data, size_t bytes);
// Before cudaMemcpy and its relatives copy, in whatever direction.
void host_copy(const void* to, const void* from, size_t bytes);
// Before cudaMemset and its relatives write.
void host_fill(const void* to, size_t bytes);
void expect_output(void* base);
void read_only(void* base);  // kernels get it as a pointer to const
// A static array of the block has its place: called once per launch and array. The dynamic buffer comes with slot null.
void shared_array(Launch& launch, const void* slot, size_t offset, size_t bytes, const char* name);

// --- the C interface ---
void reset();
int configure(const char* key, const char* value);  // 0 if the key is theirs and the value good, else -1
const char* report();
int writer(const void* data, unsigned writer[6]);

}  // namespace sim::events
