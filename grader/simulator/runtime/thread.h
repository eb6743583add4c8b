// The state of a running grid: Launch > Cluster > Block > Warp > Thread.
//
// The scheduler owns these objects. The checks read them, and keep their own data behind the `checks` pointers, which
// the runtime sets to null when an object starts a new life and never touches otherwise.
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
struct Products;
struct TensorMemory;

constexpr unsigned lanes_per_warp = 32;
constexpr unsigned max_threads_per_block = 1024;
constexpr unsigned max_warps_per_block = max_threads_per_block / lanes_per_warp;
constexpr unsigned warps_per_group = 4;
constexpr unsigned named_barriers = 16;  // PTX: 0..15; __syncthreads is number 0
constexpr unsigned grid_number = named_barriers;
constexpr unsigned cluster_number = grid_number + 1;
constexpr unsigned barrier_numbers = cluster_number + 1;
constexpr unsigned max_cluster_blocks = 16;  // of any architecture

enum class State : uint8_t { unstarted, ready, running, spinning, waiting, exited };

// What a thread waits for. Also the kind of a warp collective: lanes that meet must agree on it.
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

const char* wait_name(Wait wait, uint8_t detail);  // "__syncthreads", "__shfl_down_sync", ...

struct Thread {
    // What the scheduler needs at each switch comes first.
    void* stack_pointer;  // of the suspended fiber
    Fiber* fiber;
    Warp* warp;
    Block* block;
    uint3 index;      // threadIdx
    uint16_t linear;  // x fastest
    uint8_t lane;     // linear % 32
    State state;

    // Where it waits: valid while state is `waiting`, kept afterwards for findings.
    Wait wait;
    uint8_t wait_detail;  // Shuffle, Vote or Reduce; barrier number for barriers
    unsigned wait_mask;
    Site wait_site;
    const void* call_address;  // return address of its last call into the simulator: what a symbolizer wants
    const char* wait_label;    // name of an exchange of a warp or warpgroup
    Mbarrier* mbarrier;        // null: one that nobody has initialized

    const void* polled;  // what it read last without anything having changed: twice in a row is a spin loop
    unsigned polls;
    unsigned looks;       // at any address, since it let others run
    const void* watched;  // what it polled last, and the value that it saw there: when that changes, it waits no more
    unsigned watched_bytes;  // 0: not seen yet
    uint64_t watched_value;
    const void*
        seen;  // what it was last seen to read of the host's memory, in a launch without checks: host_poll_detector.h
    const void* seen_from;
    unsigned char seen_value;
    unsigned seen_alike;  // so many times in a row
    AsyncCopies* async_copies;
    void* checks;
};

struct Warp {
    Thread* threads;  // of lane 0; the others follow
    Block* block;
    unsigned index;     // within the block
    unsigned existing;  // lanes that exist: the last warp of a block may have fewer than 32
    // Each lane that exists is the running one or in exactly one of these sets.
    unsigned unstarted;
    unsigned ready;
    unsigned spinning;
    unsigned paused;          // by let_others_run
    unsigned at_collective;   // a warp intrinsic with a mask
    unsigned at_active_mask;  // __activemask
    unsigned exited;
    struct {
        unsigned arrived;
        unsigned waiting;  // those of them that wait
    } at_barrier[barrier_numbers];
    unsigned owe_cluster_wait;          // lanes that have arrived at the cluster's barrier and not waited since
    unsigned registers;                 // what setmaxnreg gave each thread; 0: as at the launch
    unsigned mask[lanes_per_warp];      // of the collective at which a lane waits
    unsigned argument[lanes_per_warp];  // the source lane of a shuffle
    uint64_t tag[lanes_per_warp];       // kind and place: lanes that meet must agree
    uint64_t input[lanes_per_warp];     // of a collective, written by each lane on arrival
    uint64_t output[lanes_per_warp];    // written by the last lane for all
    Products* products;                 // wgmma that nobody has waited for
    void* checks;
};

// Threads of any group that wait until so many have come: of a block, of some of its warps, or of several blocks. Which
// lanes have come stands in their warps.
struct Barrier {
    unsigned expected;  // threads; 0: all that live
    unsigned arrived;
    Site site;  // of who arrived first
    Thread* first;
    bool reported;        // that its sites differ
    unsigned predicates;  // true ones so far, of __syncthreads_count/_and/_or
    unsigned was_true;    // of the last time that it was complete
    unsigned participants;
};

// Blocks that are resident together and reach each other's shared memory; in an ordinary launch one.
struct Cluster {
    uint3 index;                        // in clusters
    uint64_t linear;                    // x fastest
    unsigned size;                      // blocks
    Block* blocks[max_cluster_blocks];  // by rank
    unsigned live;                      // threads that have not exited
    Barrier barrier;
    void* checks;
};

struct Block {
    Launch* launch;
    Cluster* cluster;
    unsigned rank;           // in the cluster, x fastest
    uint3 index_in_cluster;  // %cluster_ctaid
    Worker* worker;
    uint3 index;      // blockIdx
    uint64_t linear;  // x fastest
    uint64_t serial;  // number of this block among all that this process ever ran; starts at 1
    unsigned slot;    // which storage of the worker it uses: two blocks that exist at once differ in it
    unsigned thread_count;
    unsigned warp_count;
    unsigned live;  // threads that have not exited
    Thread* threads;
    Warp* warps;
    char* shared;          // static arrays
    char* dynamic_shared;  // then the dynamic buffer
    void* checks;

    Mbarrier* mbarriers;
    MbarrierOperation* operations;  // under way, oldest first
    uint64_t operation_count;       // started so far
    TensorMemory* tensor_memory;    // null: none has been allocated

    // The scheduler's.
    unsigned runnable;  // warps with a ready or an unstarted lane
    unsigned spinning;  // warps with a spinning lane
    Barrier barriers[named_barriers];
};

struct Launch {
    const char* kernel_name;
    const void* caller;  // where the launch is written; null: unknown
    dim3 grid;
    dim3 block;
    dim3 cluster;       // blocks of each
    bool has_clusters;  // the kernel or the launch says so
    size_t dynamic_shared_bytes;
    size_t static_shared_bytes;  // as far as the arrays are known
    bool cooperative;
    bool programmatic;  // it may begin before the one before it in its stream has ended
    bool checks_enabled;
    const char* parameters;  // the kernel's; a __grid_constant__ one has its address there
    size_t parameter_bytes;
    unsigned workers;  // OS threads that run its blocks, at most
    uint64_t id;       // launches are numbered from 1
    int error;         // cudaError_t of the launch, 0 while all is well
    void* checks;
};

// The running thread of this OS thread, or null in host code.
extern __thread Thread* current_thread __attribute__((tls_model("initial-exec")));

// Ends the launch of the running thread with this cudaError_t. Never returns; the other threads are abandoned.
[[noreturn]] void kill_launch(int cuda_error);

// Called by the checks at every volatile read: a thread that polls lets others run.
void volatile_read(const void* address, unsigned bytes);

// Suspends the running thread until every other lane of its warp that can run has run, and waits, paused or exited.
// No sign of a spin loop. For the checks: lanes that take turns keep their logs short.
void let_others_run();

// Every __device__ and __constant__ variable, for the checks to look up bounds. Returns false when `address` is in
// none.
struct GlobalVariable {
    const char* name;
    char* base;
    size_t bytes;
    bool constant;
    char* on_host;  // the host's copy; null: host code does not name it
};
bool find_global(const void* address, GlobalVariable* found);
// The variable in whose copy on the host the address lies. All copies are in one range.
bool find_host_name(const void* address, GlobalVariable* found);
extern uintptr_t host_names_base;
extern size_t host_names_bytes;

// Whether `address` lies in a red zone among constants.
bool in_zone(const void* address);

// The block of the same cluster whose shared memory holds the address; null: none.
Block* shared_owner(const Block& block, const void* address);
bool is_shared_of(const Block& block, const void* address);
// The generic address for an offset in the block's shared window; null: below it.
void* shared_address_of(const Block& block, uint32_t offset);

// The device memory that holds `address`: [base, base + bytes) of the arena; null base before the first allocation.
struct ArenaRange {
    char* base;
    size_t bytes;
};
ArenaRange arena_range();

}  // namespace sim
