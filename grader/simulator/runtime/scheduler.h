// The scheduler's state, and the functions that barriers, warp intrinsics and atomics call.
//
// A worker is an OS thread that runs blocks. It runs one cluster after another; in an ordinary launch a cluster is one
// block. More blocks are resident at once only in a cooperative launch, when a block spins and waits for another one, or
// when blocks are held back (added_to).
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

#include "events.h"
#include "fiber.h"
#include "sampling.h"
#include "shared_counter.h"
#include "thread.h"

namespace sim {

enum class Order : uint8_t { forward, reverse, random };

constexpr unsigned max_workers = 64;

// A static shared array, and the alignment that its declaration promises.
struct StaticArray {
    size_t offset, bytes, alignment;
};

// A launch with the data that only the runtime needs.
struct Grid : Launch {
    void (*body)(void*);
    void* context;
    uint64_t block_count;
    uint64_t cluster_count;
    dim3 clusters;  // size of the grid in clusters
    unsigned cluster_size;
    uint64_t shared_limit;          // static + dynamic bytes that this kernel may use
    size_t static_extent;           // end of the static arrays including their red zones
    StaticArray static_arrays[64];  // the first 64 static arrays that were placed
    unsigned static_array_count;
    Counter next_cluster;
    sampling::Clusters sample;  // the clusters to check, if partly_checked
    uint64_t started_blocks, checked_blocks;
    Flag stop;     // a thread failed: every worker leaves the grid
    bool faulted;  // a thread faulted: `fault` describes it
    events::Fault fault;
    uint64_t residency;  // blocks that can be resident on the device at once
    // The following fields are used by block_order.cpp.
    bool helped;                    // other workers have started
    bool rolled_back;               // the launch will run again, on one worker
    const char* one_worker_reason;  // why the launch has one worker; null: it has several, or only one was requested
};

// Returns whether the launch can be rolled back: only the checks record what its blocks overwrite.
inline bool can_roll_back(const Grid& grid) { return grid.checks_enabled && !grid.partly_checked; }

// The memory of a block, reused by later blocks.
struct BlockStorage : Block {
    BlockStorage* next;
    dim3 shape;             // block shape for which threads and warps are initialized
    unsigned capacity;      // threads
    size_t poisoned_bytes;  // bytes of static shared memory that this block has filled with 0xFF
    Cluster own_cluster;    // the cluster whose first block this is
};

struct Worker {
    unsigned number;
    Grid* grid;
    void* host_context;  // context of run_blocks, which started the first fiber
    sigjmp_buf landing;  // target of the jump out of a fault handler
    FiberPool fibers;
    Fiber* fiber;      // the running fiber
    Thread* starting;  // the thread that a fresh fiber will run
    bool next_is_new;  // next_thread chose a thread that has not started
    Block* block;      // the block being run
    Warp* warp;
    // A short list of the blocks that are being run. It is walked only when a block cannot continue. A block that has
    // ended stays in the list until its cluster ends, because other blocks may access its shared memory.
    BlockStorage* resident;
    unsigned resident_count;
    BlockStorage* unused;  // storage of ended blocks, for later ones
    unsigned slots;
    Barrier grid_barrier;
    uint64_t live_threads;    // threads of the resident blocks that have not exited
    BlockStorage idle_block;  // current block of a worker that runs none
    Warp idle_warp;
    uint64_t tickets;      // number of times that a block was held back
    unsigned releases;     // number of times that the block held back last was released
    unsigned held_rounds;  // rounds in which all other blocks spun, since a block was held back or released
    Order order;
    uint64_t random_state;
    // Rounds in which all runnable threads spun, since a block began, a thread ended, or a barrier without polling
    // threads completed.
    unsigned spin_rounds;
    unsigned stalled_rounds;  // rounds in which all live threads only polled, since the last progress
    // The watchdog's signal handler compares these with the values at its last tick, seen_*.
    volatile uint64_t switches, seen_switches;
    volatile uint64_t blocks_ended, seen_blocks_ended;
    const Thread* volatile seen_thread;
    unsigned idle_ticks, stop_ticks, alone_ticks;
    bool samples_polls;  // find out what the threads without checks poll: host_poll_detector.h
    void* handler_stack;
    // The processor fault because of which the worker left the grid.
    bool faulted;
    events::Fault fault;
    int fault_error;
};

extern __thread Worker* current_worker __attribute__((tls_model("initial-exec")));

// Runs blocks of the grid until none is left or the launch is stopped. On the host's stack.
void run_blocks(Worker& worker, Grid& grid);

// Switches to the host's stack and abandons all fibers.
[[noreturn]] void leave_grid(Worker& worker);

// Runs other threads until the scheduler chooses this one again. The caller has moved the thread from `ready` to
// another set of its warp.
void switch_away(Thread& self);

// Lets these lanes run again.
inline void make_ready(Warp& warp, unsigned lanes) {
    warp.ready |= lanes;
    if (lanes) warp.block->runnable |= 1u << warp.index;
}

// If every spinning thread has polled unchanged memory for this many rounds, another block is started.
constexpr unsigned spin_patience = 8;

// Number of releases in a launch after which no block is held back any more. In a right kernel, a block may add again and
// again until another block, which was held back earlier, has finished.
constexpr unsigned most_releases = 1000;

// Called when the running thread polls. Runs all other threads first, and starts more blocks if no thread can run.
void spin(Thread& self);

// Called when the thread has added to global memory. With checks, its block may be held back until no other block can
// run: (1) The thread has added to this address before. It may have taken a ticket of a queue, and otherwise the first
// block of a persistent kernel would take all tickets. (2) A thread of another block polls this address atomically. So
// it sees each value, and passes early if it waits for too small a number.
void added_to(Thread& self, const void* address);

// Called when the thread reads `address` without changing memory. Calls spin() from the second such read in a row.
void polled(Thread& self, const void* address, unsigned bytes);

// Returns the thread to report for an endless polling loop: the first that spins, in the order of blocks and threads.
// May be null.
Thread* first_spinning(const Worker& worker);
// If the running thread, or else a spinning one, repeatedly read the same value of host memory, names it in the fault.
void name_seen_polling(const Worker& worker, Thread* running, events::Fault& fault);

// Ends the launch because of a fault that the running thread detected itself.
[[noreturn]] void raise_fault(events::FaultKind kind, int cuda_error, const void* data, const void* address,
                              const char* detail);
// Records the first fault of a launch; later ones are ignored. Async-signal-safe.
void record_fault(Grid& grid, const events::Fault& fault, int cuda_error);

// A thread has exited: completes barriers and warp intrinsics that waited only for it.
void complete_after_exit(Block& block, Warp& warp);

// The thread has exited: completes the barrier of its cluster if it waited only for this thread.
void complete_cluster_after_exit(Thread& thread);

// A block has ended: no thread waits at any of its barriers.
void forget_arrivals(Block& block);

// A general collective (mma.sync, ldmatrix, ...). Each lane passes a pointer to its arguments, which stay valid while
// it waits. The last lane to arrive runs `finish` once; arguments[lane] is null for lanes that do not participate.
// `name` appears in findings. The collective does not order memory accesses. `address` is the return address in the
// kernel. `detail` (below 16) is a number that must be equal in all lanes; if the lanes' numbers differ, the launch ends
// with a finding. Callers use different numbers for different instructions or arguments.
using WarpFinish = void (*)(void* const arguments[32], unsigned participants);
void warp_exchange_from(Site site, const char* name, unsigned mask, void* arguments, WarpFinish finish,
                        const void* address, unsigned detail = 0);

// Does the same as warp_exchange_from for the four warps of a warpgroup. arguments[thread] is null for a thread that
// does not participate.
using WarpgroupFinish = void (*)(Warp* first, void* const* arguments);
void warpgroup_exchange(Site site, const char* name, void* arguments, WarpgroupFinish finish, const void* address,
                        unsigned detail = 0);

// Gives the lanes that wait at __activemask their result, when no other lane of the warp can run.
void resolve_active_mask(Warp& warp);

// Returns which of `count` operations in flight is performed next.
unsigned choose_place(Worker& worker, unsigned count);

// Returns storage for a block of the worker's grid, with threads and warps initialized; null when out of memory.
BlockStorage* take_storage(Worker& worker);
void give_storage(Worker& worker, BlockStorage* block);

// Shared memory of a block's storage: mapped once, filled with 0xFF whenever a block begins.
bool map_shared_memory(BlockStorage& block);
void unmap_shared_memory(BlockStorage& block);
void poison_shared_memory(BlockStorage& block);

void finish_async_copies(Thread& thread, bool perform);
// Called when the block or its launch has ended. Drops wgmma operations that no warp has waited for.
void finish_wgmma(Block& block);
void finish_tensor_memory(Block& block);

}  // namespace sim
