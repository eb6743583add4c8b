// The checks' state of each running thread, warp, block and worker, and of the launch.
#pragma once

#include "checks/core/containers.h"
#include "checks/counting/counters.h"
#include "checks/synchronization/order.h"
#include "checks/core/region.h"
#include "checks/core/site.h"
#include "checks/core/epoch.h"
#include "runtime/clock.h"
#include "runtime/tensor_type.h"
#include "runtime/thread.h"

namespace sim::checks {

struct BlockState;
struct WarpState;
struct WorkerState;
struct RequestLog;
struct Overwritten;

// A write that is not ordered after another thread's write to the same memory. It is a race unless both wrote the same
// value, which is known only after the write.
struct PendingWrite {
    const void* address;
    size_t bytes;
    unsigned attempts;
    char before[16];
    const void* code_address;
    Epoch other;
    uint16_t other_site;
    Access access;
    Access other_access;
    Region* region;
};

// An out-of-bounds index that -fsanitize=bounds reported. The array may be local, or in memory whose accesses are
// checked by address.
struct PendingIndex {
    const void* code_address;
    long long index;
    const char* type;
};

struct VolatileRead {
    uintptr_t address;
    unsigned bytes;
    const void* code;
    char value[16];
};

// The kind of the thread's last fence, atomic read or volatile read. volatiles.h uses it to recognize threads that
// synchronize through volatile accesses.
enum class LastStrong : uint8_t { none, fence, atomic_read, volatile_read };

struct AsyncCopy {
    uintptr_t shared;
    uint32_t bytes;
    uint32_t group;
    Epoch pending;           // the epoch of the cells until a thread has waited
    uint64_t operation;      // number of the mbarrier arrival that follows the copy; 0: none
    bool overtaken;          // the thread has waited for an older copy, but not for this one
    uint32_t foreign_reads;  // of its block, when the copy began
};

struct BulkState;
struct BlockWgmma;
struct WatchedRegisters;
struct TensorThread;
struct BlockTensorMemory;
struct RemoteAccess;

// Rarely needed state of a thread. It is allocated when first needed.
struct ThreadExtras {
    const VectorClock* known;     // accesses of other threads that are ordered before this thread's next access
    const VectorClock* acquired;  // what atomic reads observed; ordered before this thread only after its next fence
    const Release* released[3];   // what the last fence of each scope (block, cluster, device or wider) published; null
                                  // if a later one has a wider scope
    Growable<PendingWrite>* writes;  // pending writes; null: none
    const void* piece_code;          // the code address of the last access after a write became pending
    uintptr_t piece;                 // the memory address of that access
    PendingIndex index;
    VolatileRead last_read;
    Growable<AsyncCopy>* copies;
    uint32_t copy_group;
    BulkState* bulk;              // see mbarriers.h
    WatchedRegisters* registers;  // see wgmma.h
    TensorThread* tensor;         // see tensor_memory.h
    bool has_index;
};

// The memory of the last access that a hook reported.
struct Hooked {
    uintptr_t address;
    size_t bytes;
    bool contains(uintptr_t at, size_t size) const { return at - address < bytes && size <= bytes - (at - address); }
};

struct alignas(64) ThreadState {
    Epoch epoch;
    // For each kind of memory (Window): an access is ordered before this thread's next access if its epoch is in the
    // range. A write with a smaller epoch counts as no write.
    EpochRange floors[windows];
    Epoch covered;       // has_reader(): only a reader set with this Epoch::reach() may include the thread
    Epoch warp_covered;  // has_reader(): a set of readers of this warp at this time has this Epoch::without_lane()
    WorkerState* worker;
    WarpState* warp;
    BlockState* block;
    Thread* thread;
    Hooked hooked[2];       // of the last read, of the last write
    ThreadExtras* extras;   // null if the thread needs none
    uint32_t barrier_time;  // accesses of the block before this time are ordered before now
    uint8_t lane;
    LastStrong last_strong;
    bool awaited;   // has executed griddepcontrol.wait, in a launch that may overlap with the previous one
    bool pending;   // `recorded` is set, or a write or index is pending: the next access calls before_access()
    bool recorded;  // the thread's accesses are recorded: recording.h
    bool watches;   // wgmma or tcgen05.ld uses local variables of the thread (extras->registers)

    uint32_t time() const { return epoch.time(); }
};

struct WarpState {
    Warp* warp;
    BlockState* block;
    uint32_t sync_time;  // time of the last __syncwarp of all lanes
    RequestLog* parked;  // logs of sites that another warp uses now
};

// The shared memory of one block: regions of its arrays, and their shadow cells.
struct SharedMemory {
    uintptr_t base;
    uint64_t launch;  // launch for which `regions` are valid
    ShadowCell* cells;
    size_t known;               // number of valid regions
    Growable<Region*> regions;  // one region per array of the launch; reused by later launches
    SharedMemory* next;
};

struct BlockState {
    Block* block;
    WorkerState* worker;
    SharedMemory* shared;
    ThreadState* threads;
    unsigned capacity;  // number of threads for which there is room
    WarpState warps[max_warps_per_block];
    uint32_t first_serial;
    uint32_t serial;
    uint32_t cluster_first;  // serial of the first block of its cluster
    uint32_t cluster_size;
    HashMap<RemoteAccess>* remote;  // the last access by each thread of other blocks to this block's shared memory
    uint32_t time;                  // the latest time that a thread of the block has
    uint32_t barrier_time;          // the time that the last barrier of all threads assigned
    uint32_t foreign_reads;  // atomic and volatile reads of what another block wrote in this launch, and grid barriers
    const VectorClock* barrier_known;  // what all threads know since that barrier
    bool extras;                       // some thread of the block has extras
    bool exact;                        // reader sets list every member: reader_set.h
    bool fenced;                       // a thread has executed a fence or a release since the last barrier
    bool exit_reported;
    bool heard_others;  // a thread has read a variable through which it may know of blocks without checks
    const VectorClock* arrivals[named_barriers];  // accesses released by bar.arrive
    BlockWgmma* wgmma;                            // wgmma.h
    BlockTensorMemory* tensor_memory;             // tensor_memory.h
    uint8_t* swizzles;                            // swizzles.h
    void* executed;  // execution counts of its threads, if requested: checks/counting/executed.h
    BlockState* next;
};

struct TouchedSectors;
class NumberSet;

// A segment of a loaded library.
struct Segment {
    uintptr_t base;
    size_t bytes;
    bool writable;
    bool sealed;  // made read-only by the loader after relocation (RELRO)
};

struct WorkerState {
    const Worker* worker;
    SiteTable sites;
    Growable<AccessSite*> touched;  // sites with log entries
    RequestLog* free_logs;
    BlockState* free_blocks;
    Growable<BlockState*> blocks;      // the running blocks
    SharedMemory* shared;              // list of the shared memory of each block that the worker can run at once
    Pool pool;                         // freed when the launch ends
    HashMap<uint32_t> known_barriers;  // cache: known_barrier() + 1, by vector clock and block
    HashMap<bool> waits_at;            // code addresses of atomic operations by which threads wait (volatiles.h)
    TouchedSectors* sectors;
    NumberSet* numbers;          // scratch space for counting requests
    Segment tables;              // the last segment in which constants of a kernel library were found
    Segment virtual_tables;      // the last segment found with constants that contain addresses
    uintptr_t table_pieces[64];  // the pieces of constants that the worker read last; caches LaunchState::table_pieces
    uint64_t launch;             // launch for which the caches are valid
    Growable<Overwritten> overwritten;  // parallel_blocks.h
    SpinLock* held;
};

struct SharedArray {
    const void* slot;  // identifies the static array; null for the dynamic buffer
    size_t offset;
    size_t bytes;
    uint32_t id;
    char name[64];
};

struct LaunchState {
    Launch* launch;
    uint32_t first_serial;  // serial of the first block; each grid barrier adds the number of blocks
    // Accesses with smaller serials are ordered before this launch. For larger serials, streams.h decides.
    uint32_t open_serial;
    // For a programmatic launch: the serials of the previous launch in its stream, which may run until a thread waits
    // for it (griddepcontrol.wait). The number is 0 if there is no such launch.
    uint32_t overlap_first, overlap_serials;
    uint32_t blocks;
    uint32_t cluster_size;
    uint32_t start_serial;  // first_serial at the start
    unsigned kernel;        // index into the kernels of the report
    bool concurrent;        // several workers run blocks with checks
    bool blocks_joined;     // all blocks have met at a grid barrier
    size_t sites_before;    // number of site numbers that existed before the launch
    RunCounters counted_before;
    bool exact;  // a fence was executed: reader sets list every member
    bool has_dynamic_array;
    Growable<SharedArray> arrays;
    SpinLock lock;
    HashMap<SyncLog*> logs;  // the last log of each atomic variable, by its address
    Growable<SyncLog*> every_log;
    HashMap<bool> table_pieces;  // the pieces of tables of constants that were read: tables.h
    HashMap<bool> changed;       // memory shared with the host that atomic and volatile operations have changed
    uint64_t barriers;
    HashMap<uint64_t> barriers_at;           // executed barriers by return address
    HashMap<uint64_t> tensor_operations_at;  // additions and multiplications by return address
    HashMap<uint64_t> operand_bytes_at;      // bytes read by tensor cores, by return address
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

// Gives the thread a new time and updates everything derived from it.
void set_time(ThreadState& thread, uint32_t time);
// Recomputes `floors` of the thread. Called after a change of block.barrier_time or of the serials.
void set_floors(ThreadState& thread);

// Called when a thread reads a variable through which blocks may synchronize.
void note_heard_others(BlockState& block, const void* variable);
// Returns whether the block may be ordered after other blocks in a way that the checks do not see, because a block
// without checks took part.
bool may_know_others(const BlockState& block);

// Returns the block of the same cluster whose shared memory holds the address, or null.
BlockState* owner_of_shared(BlockState& block, uintptr_t address);
// Returns the region of the block's shared memory that holds the address, or null.
Region* find_shared(BlockState& block, uintptr_t address);
Region* nearest_shared(BlockState& block, uintptr_t address);
bool in_shared(const BlockState& block, uintptr_t address);  // whether it is shared memory of the block's cluster

// A kernel launch or a copy, identified by the serials of its blocks.
struct PastLaunch : WorkPlace {
    uint32_t first_serial;
    uint32_t blocks;
    uint3 grid, block, cluster;
    unsigned kernel;  // for a kernel: its index in the report
};
// Assigns serials to the blocks of a launch. Returns false when it has more blocks than there are serials.
bool begin_serials(PastLaunch launch);
void end_serials();
void forget_names();
const PastLaunch* past_launch(uint32_t serial);  // returns null if the launch is no longer stored
// The stored launches and copies, sorted by first serial.
Growable<PastLaunch>& past_launches();
// Returns false when the serial stands for no block.
bool name_thread(uint32_t serial, unsigned thread, uint3* block_index, uint3* thread_index);

}  // namespace sim::checks
