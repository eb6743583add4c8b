// The state of a running grid: Launch > Cluster > Block > Warp > Thread.
//
// The scheduler owns these objects. The checks read them and keep their own data behind the `checks` pointers. The
// runtime sets those to null when an object is reused and does not touch them otherwise.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/dim.h"
#include "sim/site.h"

namespace sim {

struct Fiber;
struct Worker;
struct Thread;
struct Warp;
struct Block;
struct Cluster;
struct Launch;
struct AsyncCopies;
struct Mbarrier;
struct MbarrierOperation;
struct PendingWgmma;
struct TensorMemory;

constexpr unsigned lanes_per_warp = 32;
constexpr unsigned max_threads_per_block = 1024;
constexpr unsigned max_warps_per_block = max_threads_per_block / lanes_per_warp;
constexpr unsigned warps_per_group = 4;
constexpr unsigned named_barriers = 16;  // PTX: 0..15; __syncthreads is number 0
constexpr unsigned grid_number = named_barriers;
constexpr unsigned cluster_number = grid_number + 1;
constexpr unsigned barrier_numbers = cluster_number + 1;
constexpr unsigned max_cluster_blocks = 16;  // the largest of any architecture

enum class State : uint8_t { unstarted, ready, running, spinning, waiting, exited };

// The reason why a thread waits. For a warp collective, it is the kind of collective, which must be equal in all
// participating lanes.
enum class Wait : uint8_t {
    none,
    block_barrier,
    named_barrier,
    grid_barrier,
    warp_barrier,
    shuffle,
    vote,
    match,
    reduce,
    exchange,
    active_mask,
    mbarrier,
    warpgroup,
    cluster_barrier
};

struct Thread {
    // Fields that the scheduler needs at each switch come first.
    void* stack_pointer;  // stack pointer of the suspended fiber
    Fiber* fiber;
    Warp* warp;
    Block* block;
    uint3 index;      // threadIdx
    uint16_t linear;  // index in the block, x fastest
    uint8_t lane;     // linear % 32
    State state;
    uint16_t conditions;  // number of nested loop conditions that the thread is evaluating: sim/device.h

    // The place and the cause of the thread's wait. Valid while the state is `waiting`; findings read them later, too.
    Wait wait;
    uint8_t wait_detail;  // Shuffle, Vote or Reduce; barrier number for barriers
    unsigned wait_mask;
    Site wait_site;
    const void* call_address;  // return address of its last call into the simulator, for the symbolizer
    const char* wait_label;    // name of a warp or warpgroup exchange
    Mbarrier* mbarrier;        // null: an uninitialized mbarrier

    const void* polled;  // the address that it read last without changing memory; twice in a row is a spin loop
    unsigned polls;
    unsigned polling_reads;  // polling reads at any address since other threads last ran
    // the address that it polled last, and the value there; the thread waits until the value changes
    const void* watched;
    unsigned watched_bytes;  // 0: the value was not read yet
    uint64_t watched_value;
    bool stalled;           // its last poll saw nothing new
    bool polls_atomically;  // it polled `watched` by an atomic operation, not by a volatile read
    const void* seen;       // host memory that it read at its last sample (host_poll_detector.h)
    const void* seen_from;
    unsigned char seen_value;
    unsigned seen_alike;  // consecutive samples with the same address and value
    AsyncCopies* async_copies;
    // the addresses in global memory to which it added last (scheduler.h, added_to)
    const void* added[4];
    unsigned additions;
    void* checks;
};

// Returns the operation at which the thread waits: "__syncthreads", "__shfl_down_sync", ...
const char* wait_name(const Thread& thread);

struct Warp {
    Thread* threads;  // the thread of lane 0; the other lanes follow
    Block* block;
    unsigned index;     // number of the warp in its block
    unsigned existing;  // lanes that exist: the last warp of a block may have fewer than 32
    // Each existing lane is either the running one or in exactly one of these sets.
    unsigned unstarted;
    unsigned ready;
    unsigned spinning;
    unsigned paused;          // lanes in let_others_run
    unsigned at_collective;   // lanes at a warp intrinsic with a mask
    unsigned at_active_mask;  // lanes at __activemask
    unsigned exited;
    struct {
        unsigned arrived;
        unsigned waiting;  // the arrived lanes that wait
    } at_barrier[barrier_numbers];
    unsigned owe_cluster_wait;          // lanes that have arrived at the cluster barrier and must still wait there
    unsigned registers;                 // registers per thread, set by setmaxnreg; 0: as at the launch
    unsigned mask[lanes_per_warp];      // mask of the collective at which each lane waits
    unsigned argument[lanes_per_warp];  // the source lane of a shuffle
    uint64_t tag[lanes_per_warp];       // kind and place of the intrinsic, equal in all participating lanes
    uint64_t input[lanes_per_warp];     // operands of a collective, written by each lane on arrival
    uint64_t output[lanes_per_warp];    // written by the last lane for all
    PendingWgmma* wgmma;                // wgmma that no warp has waited for
    void* checks;
};

// Threads that wait until a number of threads has arrived: threads of a block, of some of its warps, or of several
// blocks. The warps hold the set of arrived lanes.
struct Barrier {
    unsigned expected;  // number of threads that must arrive; 0: all live threads
    unsigned arrived;
    Site site;  // site of the first arrival
    Thread* first;
    bool reported;        // a finding about different sites was reported
    bool stalled;         // the last poll of an arrived thread saw nothing new
    unsigned predicates;  // number of true predicates, for __syncthreads_count/_and/_or
    unsigned was_true;    // `predicates` of the last completed phase
    unsigned participants;
};

// Blocks that are resident together and can access each other's shared memory; one block in an ordinary launch.
struct Cluster {
    uint3 index;                        // coordinates of the cluster, in clusters
    uint64_t linear;                    // index in the grid, x fastest
    unsigned size;                      // number of blocks
    Block* blocks[max_cluster_blocks];  // blocks by rank
    unsigned live;                      // number of threads that have not exited
    Barrier barrier;
    void* checks;
};

struct Block {
    Launch* launch;
    Cluster* cluster;
    unsigned rank;           // rank in the cluster, x fastest
    uint3 index_in_cluster;  // %cluster_ctaid
    Worker* worker;
    uint3 index;      // blockIdx
    uint64_t linear;  // index in the grid, x fastest
    uint64_t serial;  // number among all blocks that this process ever ran; starts at 1
    unsigned slot;    // number of the block's storage; two blocks that exist at the same time differ
    unsigned thread_count;
    unsigned warp_count;
    unsigned live;  // threads that have not exited
    Thread* threads;
    Warp* warps;
    char* shared;          // static arrays
    char* dynamic_shared;  // the dynamic buffer behind them
    bool checked;          // its events are reported to the checks
    void* checks;

    Mbarrier* mbarriers;
    MbarrierOperation* operations;  // operations in flight, oldest first
    uint64_t operation_count;       // number of operations started so far
    TensorMemory* tensor_memory;    // null if the block has allocated no tensor memory

    // State of the scheduler.
    unsigned runnable;  // warps with a ready or an unstarted lane
    unsigned spinning;  // warps with a spinning lane
    uint64_t held;  // 0, or the number of the ticket because of which the block does not run (scheduler.h, added_to)
    Barrier barriers[named_barriers];
};

struct Launch {
    const char* kernel_name;
    const void* caller;  // return address of the launch; null: unknown
    dim3 grid;
    dim3 block;
    dim3 cluster;       // size of each cluster in blocks
    bool has_clusters;  // set by the kernel or the launch
    size_t dynamic_shared_bytes;
    size_t static_shared_bytes;  // bytes of the static arrays that are known so far
    bool cooperative;
    bool programmatic;  // may begin before the previous launch in its stream has ended
    bool checks_enabled;
    bool partly_checked;     // some of its blocks run without checks
    const char* parameters;  // the kernel's parameters; a __grid_constant__ parameter has its address here
    size_t parameter_bytes;
    unsigned workers;  // OS threads that run its blocks, at most
    uint64_t id;       // launches are numbered from 1
    int error;         // cudaError_t of the launch, 0 without an error
    void* checks;
};

// The thread that runs on this OS thread, or null in host code.
extern __thread Thread* current_thread __attribute__((tls_model("initial-exec")));

// Ends the launch of the running thread with this cudaError_t. Never returns; the other threads are abandoned.
[[noreturn]] void kill_launch(int cuda_error);

// Called by the checks at every volatile read. If the thread polls, other threads run first.
void volatile_read(const void* address, unsigned bytes);

// Suspends the running thread until every other lane of its warp that can run has run and now waits, is paused or has
// exited. Does not count as spinning. The checks use it: their logs stay short when lanes take turns.
void let_others_run();

// Finds the __device__ or __constant__ variable that holds an address, so that the checks know its bounds. Returns
// false when there is none.
struct GlobalVariable {
    const char* name;
    char* base;
    size_t bytes;
    bool constant;
    char* on_host;  // the host's copy; null: host code does not name the variable
};
bool find_global(const void* address, GlobalVariable* found);
// Finds the device variable whose host copy holds the address. All host copies lie in one address range.
bool find_host_name(const void* address, GlobalVariable* found);
extern uintptr_t host_names_base;
extern size_t host_names_bytes;

// Returns whether `address` lies in a red zone between constants.
bool in_zone(const void* address);

// Returns the block of the same cluster whose shared memory holds the address, or null.
Block* shared_owner(const Block& block, const void* address);
bool is_shared_of(const Block& block, const void* address);
// Returns the generic address for an offset in the block's shared window, or null below the window.
void* shared_address_of(const Block& block, uint32_t offset);

// Returns the arena range [base, base + bytes); base is null before the first allocation.
struct ArenaRange {
    char* base;
    size_t bytes;
};
ArenaRange arena_range();

}  // namespace sim
