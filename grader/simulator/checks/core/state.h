// What the checks keep for each running thread, warp, block and worker, and for the launch as a whole.
#pragma once

#include "checks/core/containers.h"
#include "checks/synchronization/order.h"
#include "checks/core/region.h"
#include "checks/core/site.h"
#include "checks/core/epoch.h"
#include "runtime/tensor_type.h"
#include "runtime/thread.h"

namespace sim::checks {

struct BlockState;
struct WarpState;
struct WorkerState;
struct RequestLog;
struct Overwritten;

// A write to what another thread wrote, unordered. A race, unless both wrote the same value: known after the write.
struct PendingWrite {
    const void* address;
    size_t bytes;
    unsigned looks;
    char before[16];
    const void* code_address;
    Epoch other;
    uint16_t other_site;
    Region* region;
};

// An index out of bounds that -fsanitize=bounds reported: of a local array, or of an array that is checked by address.
struct PendingIndex {
    const void* code_address;
    long long index;
    const char* type;
};

struct AsyncCopy {
    uintptr_t shared;
    uint32_t bytes;
    uint32_t group;
    uint64_t operation;  // that will arrive at an mbarrier when the copy is complete; 0: none
    bool overtaken;      // its thread has waited for an older copy, and not for it
};

struct BulkState;
struct BlockProducts;
struct WatchedRegisters;
struct TensorThread;
struct BlockTensorMemory;
struct RemoteAccess;

// What a thread has beyond its own epoch; most threads never need it.
struct ThreadExtras {
    const VectorClock* known;        // in force
    const VectorClock* acquired;     // read from atomics, in force after the next fence or barrier
    const Release* released[3];      // what the last fence of a scope published: block, cluster, device or more; null
                                     // where a later one reaches further
    Growable<PendingWrite>* writes;  // null: none is pending
    const void* piece_code;          // of the last hook since one is, and where that was
    uintptr_t piece;
    PendingIndex index;
    Growable<AsyncCopy>* copies;
    uint32_t copy_group;
    BulkState* bulk;              // mbarriers.h
    WatchedRegisters* registers;  // products.h
    TensorThread* tensor;         // tensor_memory.h
    bool has_index;
};

struct alignas(64) ThreadState {
    Epoch epoch;
    EpochRange floors[windows];  // accesses in these are ordered before what the thread does now; below: never written
    Epoch covered;               // the reach of a set of readers to which this thread need not be added
    Epoch warp_covered;          // the set of several lanes of this warp at this time, without the lane
    WorkerState* worker;
    WarpState* warp;
    BlockState* block;
    Thread* thread;
    ThreadExtras* extras;   // null when there are none
    uint32_t barrier_time;  // what all threads of the block did before it is ordered before what this one does now
    uint8_t lane;
    bool awaited;   // the grid before, where this one may overlap with it
    bool pending;   // extras->writes or has_index, or recorded: to be settled before anything else
    bool recorded;  // its accesses are: recording.h
    bool watches;   // extras->registers: local variables of the thread are accumulators

    uint32_t time() const { return epoch.time(); }
};

struct WarpState {
    Warp* warp;
    BlockState* block;
    uint32_t sync_time;  // of the last __syncwarp of all lanes
    RequestLog* parked;  // logs that had to make room for another warp's
};

// The shared memory of one block: regions for its arrays, and their shadow cells.
struct SharedMemory {
    uintptr_t base;
    uint64_t launch;  // for which `regions` are right
    ShadowCell* cells;
    size_t known;               // regions that are
    Growable<Region*> regions;  // one for each array of the launch, reused
    SharedMemory* next;
};

struct BlockState {
    Block* block;
    WorkerState* worker;
    SharedMemory* shared;
    ThreadState* threads;
    unsigned capacity;  // threads
    WarpState warps[max_warps_per_block];
    uint32_t first_serial;
    uint32_t serial;
    uint32_t cluster_first;  // first_serial of the first block of its cluster
    uint32_t cluster_size;
    HashMap<RemoteAccess>* remote;     // the last one of each thread of another block to this one's shared memory
    uint32_t time;                     // the last one given out
    uint32_t barrier_time;             // given out at the last barrier of all threads
    const VectorClock* barrier_known;  // what everybody knew after that one
    bool extras;                       // some thread has some
    bool exact;                        // sets of readers are kept member by member
    bool fenced;                       // a thread has published something since the last barrier
    bool exit_reported;
    const VectorClock* arrivals[named_barriers];  // what those know that have arrived and do not wait
    BlockProducts* products;                      // products.h
    BlockTensorMemory* tensor_memory;             // tensor_memory.h
    uint8_t* swizzles;                            // swizzles.h
    void* executed;  // what its threads executed, where that is counted: checks/counting/executed.h
    BlockState* next;
};

struct TouchedSectors;
class NumberSet;

// Of a loaded library.
struct Segment {
    uintptr_t base;
    size_t bytes;
    bool writable;
    bool sealed;  // by the loader, after it has put in addresses: nobody writes there any more
};

struct WorkerState {
    const Worker* worker;
    SiteTable sites;
    Growable<AccessSite*> touched;  // sites with log entries
    RequestLog* free_logs;
    BlockState* free_blocks;
    Growable<BlockState*> blocks;      // running
    SharedMemory* shared;              // of all slots
    Pool pool;                         // until the launch ends
    HashMap<uint32_t> known_barriers;  // what known_barrier() said, plus 1, by knowledge and block
    TouchedSectors* sectors;
    NumberSet* numbers;                 // for counting requests
    Segment tables;                     // constants of a kernel library, where the last ones were
    Segment virtual_tables;             // and those that have addresses in them
    uint64_t launch;                    // the one that the caches hold for
    Growable<Overwritten> overwritten;  // parallel_blocks.h
    SpinLock* held;
};

struct SharedArray {
    const void* slot;  // null for the dynamic buffer
    size_t offset;
    size_t bytes;
    uint32_t id;
    char name[64];
};

struct LaunchState {
    Launch* launch;
    uint32_t first_serial;  // of its blocks; grows at a barrier of the grid, by the number of blocks
    uint32_t
        open_serial;  // what is below it came before; what is not, and below first_serial, is looked up (streams.h)
    uint32_t
        overlap_first;  // of a programmatic launch: the serials of the one before it in its stream, which may still
    uint32_t overlap_serials;  // run where a thread has not waited for it; 0: none
    uint32_t blocks;
    uint32_t cluster_size;
    uint32_t start_serial;  // first_serial at the beginning
    unsigned kernel;        // index into the kernels of the report
    bool concurrent;        // more than one worker
    size_t sites_before;    // numbers of sites that were given out before it
    uint64_t async_before, prefetched_before;
    bool exact;  // a fence was executed: sets of readers are kept member by member
    bool has_dynamic_array;
    Growable<SharedArray> arrays;
    SpinLock lock;
    HashMap<SyncLog*> logs;  // by the address of the atomic variable
    HashMap<bool> changed;   // what atomic and volatile operations have changed of memory that the host has, too
    uint64_t barriers;
    HashMap<uint64_t> barriers_at;           // by return address
    HashMap<uint64_t> tensor_operations_at;  // by return address
    HashMap<uint64_t> operand_bytes_at;      // by return address
    uint64_t tensor_operations[tensor_types];
};

extern LaunchState the_launch;

WorkerState& worker_of(const Block& block);
void each_worker(void (*visit)(WorkerState&));

BlockState& begin_block(Block& block);
void end_block(BlockState& block);

ThreadExtras& extras_of(ThreadState& thread);

inline ThreadState* state_of(Thread& thread) { return static_cast<ThreadState*>(thread.checks); }
inline WarpState* state_of(Warp& warp) { return static_cast<WarpState*>(warp.checks); }
inline BlockState* state_of(Block& block) { return static_cast<BlockState*>(block.checks); }

// Gives the thread a new time and all that is derived from it.
void set_time(ThreadState& thread, uint32_t time);
// After a change of block.barrier_time or of the serials.
void set_floors(ThreadState& thread);

// The block of its cluster whose shared memory holds the address, or null.
BlockState* owner_of_shared(BlockState& block, uintptr_t address);
// The region of the block's shared memory that holds the address, or null.
Region* find_shared(BlockState& block, uintptr_t address);
Region* nearest_shared(BlockState& block, uintptr_t address);
bool in_shared(const BlockState& block, uintptr_t address);  // of its cluster

// Which block of which launch a serial stands for, or which copy.
struct PastLaunch {
    uint32_t first_serial;
    uint32_t blocks;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    // Who that was, and its place in the order of streams.
    unsigned kernel;
    const char* call;  // null for a kernel
    const void* address;
    unsigned stream;
    uint32_t lane;
    uint32_t number;
};
// Numbers the blocks of a launch; false when it has more than can be told apart. Fills in the serials.
bool begin_serials(PastLaunch launch);
void end_serials();
void forget_names();
const PastLaunch* past_launch(uint32_t serial);  // null when it is long over
// The first of those that the host does not know to be over, and how many there are.
Growable<PastLaunch>& past_launches();
// False when the serial stands for no block.
bool name_thread(uint32_t serial, unsigned thread, uint32_t block_index[3], uint32_t thread_index[3]);

}  // namespace sim::checks
