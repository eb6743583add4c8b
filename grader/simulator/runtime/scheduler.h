// Who runs next: the scheduler's own state and what barriers, warp intrinsics and atomics ask of it.
//
// A worker is an OS thread that runs blocks. It runs one cluster after another (in an ordinary launch a cluster is one
// block); more blocks are resident at once only in a cooperative launch, or when a block spins and waits for another one.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

#include "events.h"
#include "fiber.h"
#include "shared_counter.h"
#include "thread.h"

namespace sim {

enum class Order : uint8_t { forward, reverse, random };

constexpr unsigned max_workers = 64;

// A static shared array, and what its declaration promises of its address.
struct StaticArray {
    size_t offset, bytes, alignment;
};

// A launch with what only the runtime needs to know.
struct Grid : Launch {
    void (*body)(void*);
    void* context;
    uint64_t block_count;
    uint64_t cluster_count;
    dim3 clusters;  // the grid, in clusters
    unsigned cluster_size;
    uint64_t shared_limit;          // static + dynamic bytes that this kernel may use
    size_t static_extent;           // of the static arrays with their red zones
    StaticArray static_arrays[64];  // the first ones
    unsigned static_array_count;
    Counter next_cluster;
    Flag stop;     // a thread failed: everybody leaves
    bool faulted;  // `fault` is valid
    events::Fault fault;
    uint64_t residency;  // blocks that the device can hold at once
    // block_order.h
    bool helped;                     // other workers have started
    bool taken_back;                 // it is to run again, on one worker
    const char* one_worker_because;  // null: it has several, or nobody wanted them
};

// The memory of a block, kept for the blocks that follow.
struct BlockStorage : Block {
    BlockStorage* next;
    dim3 shape;             // for which threads and warps are filled in
    unsigned capacity;      // threads
    size_t poisoned_bytes;  // static shared memory that this block has poisoned
    Cluster own_cluster;    // the cluster of which this block is the first
};

struct Worker {
    unsigned number;
    Grid* grid;
    void* host_context;  // of run_blocks, which started the first fiber
    sigjmp_buf landing;  // where a fault leaves to
    FiberPool fibers;
    Fiber* fiber;      // the running one
    Thread* starting;  // the thread that a fresh fiber is to run
    bool next_is_new;  // next_thread chose a thread that has not started
    Block* block;      // being run
    Warp* warp;
    BlockStorage* resident;  // a list: they are few, and it is walked only when a block cannot go on. A block that has
                             // ended stays until its cluster has: others may have business with its shared memory
    unsigned resident_count;
    BlockStorage* unused;  // storage of ended blocks, for the next ones
    unsigned slots;
    Barrier grid_barrier;
    uint64_t live_threads;    // of the resident blocks
    BlockStorage idle_block;  // where a worker stands that runs no block
    Warp idle_warp;
    Order order;
    uint64_t random_state;
    unsigned spin_rounds;     // rounds of spinning threads since a block began or a thread ended
    unsigned stalled_rounds;  // rounds in which all threads that are left polled, since one of them got any further
    // Read by the watchdog's signal handler, and what it saw at its last tick.
    volatile uint64_t switches, seen_switches;
    volatile uint64_t blocks_ended, seen_blocks_ended;
    const Thread* volatile seen_thread;
    unsigned idle_ticks, stop_ticks, alone_ticks;
    void* handler_stack;
    // A fault of the processor: what it left the grid for.
    bool faulted;
    events::Fault fault;
    int fault_error;
};

extern __thread Worker* current_worker __attribute__((tls_model("initial-exec")));

// Runs blocks of the grid until none is left or the launch is stopped. On the host's stack.
void run_blocks(Worker& worker, Grid& grid);

// Leaves all fibers for the host's stack, for good.
[[noreturn]] void leave_grid(Worker& worker);

// The running thread has put itself into a set of its warp that is not `ready`: runs others until it is chosen again.
void switch_away(Thread& self);

// These lanes may run again.
inline void make_ready(Warp& warp, unsigned lanes) {
    warp.ready |= lanes;
    if (lanes) warp.block->runnable |= 1u << warp.index;
}

// Rounds in which every spinning thread looked in vain, before another block is started to help them.
constexpr unsigned spin_patience = 8;

// The running thread polls: lets all others run first, and starts waiting blocks when nobody else can.
void spin(Thread& self);

// The thread looks at `address` and changes nothing there. Spins once that happens twice in a row.
void polled(Thread& self, const void* address, unsigned bytes);

// Whom to blame when threads poll for ever: the first that spins, in the order of blocks and threads. May be null.
Thread* first_spinning(const Worker& worker);
// The first that spins and was seen to read the same value of the host's memory again and again. May be null.
Thread* first_seen_polling(const Worker& worker);

// Ends the launch because of a fault that the running thread noticed itself.
[[noreturn]] void raise_fault(events::FaultKind kind, int cuda_error, const void* data, const void* address,
                              const char* detail);
// Records the first fault of a launch; later ones are ignored. Async-signal-safe.
void record_fault(Grid& grid, const events::Fault& fault, int cuda_error);

// A thread has exited: barriers and warp intrinsics that waited only for it are complete.
void complete_after_exit(Block& block, Warp& warp);

// The thread has exited: the barrier of its cluster may have waited only for it.
void complete_cluster_after_exit(Thread& thread);

// A block has ended: nobody is at any of its barriers.
void forget_arrivals(Block& block);

// sim::warp_exchange for functions of libsim that exchange on a kernel's behalf: `address` is the kernel's. `detail`, below
// 16, differs where arguments do: the launch ends when lanes with different ones meet.
void warp_exchange_from(Site site, const char* name, unsigned mask, void* arguments,
                        void (*finish)(void* const*, unsigned), const void* address, unsigned detail = 0);

// The same for the four warps of a warpgroup: arguments[thread] is null for one that takes no part.
using WarpgroupFinish = void (*)(Warp* first, void* const* arguments);
void warpgroup_exchange(Site site, const char* name, void* arguments, WarpgroupFinish finish, const void* address,
                        unsigned detail = 0);

// Gives the lanes that wait at __activemask their result, when no other lane of the warp can run.
void resolve_active_mask(Warp& warp);

// Which of so many operations under way is performed next.
unsigned choose_place(Worker& worker, unsigned count);

// Storage for a block of the worker's grid, its threads and warps filled in; null when memory is short.
BlockStorage* take_storage(Worker& worker);
void give_storage(Worker& worker, BlockStorage* block);

// Shared memory of a block's storage: mapped once, filled with 0xFF whenever a block begins.
bool map_shared_memory(BlockStorage& block);
void unmap_shared_memory(BlockStorage& block);
void poison_shared_memory(BlockStorage& block);

void finish_async_copies(Thread& thread, bool perform);
// The block has ended, or its launch: products that nobody has waited for are dropped.
void finish_products(Block& block);
void finish_tensor_memory(Block& block);

}  // namespace sim
