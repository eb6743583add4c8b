// Records the events of one block of one launch, thread by thread. grader/simulator/recording.py combines them into
// events of warps.
//
// A run without a recording pays nothing: threads of the recorded block always have something `pending` and so take the
// slow path at each access. Rarer events test `is_recorded`.
#pragma once

#include "checks/core/access.h"

namespace sim {
struct BulkCopy;
struct Mbarrier;
}  // namespace sim

namespace sim::checks {

// The kinds of recorded events, with their numbers in the report. Numbers below 16 are those of `Access`.
enum class EventKind : uint8_t {
    barrier_wait = 16,      // the thread arrived at a barrier and waited; recorded when the barrier completes
    barrier_arrive = 17,    // the thread arrives at a barrier without waiting (bar.arrive)
    barrier_complete = 18,  // a barrier completed; belongs to no thread
    warp_sync = 19,         // the lanes of `mask` execute a warp intrinsic; `bytes` is 1 if these are all live lanes
    thread_exit = 20,
    cp_async_commit = 21,  // the thread commits its copies as a group
    cp_async_wait = 22,    // the thread waits until at most `offset` groups are pending
    copy_complete = 23,    // copied data has arrived in shared memory
    mbarrier_init = 24,    // for the five mbarrier kinds, `offset` is that of the mbarrier
    mbarrier_arrive = 25,
    mbarrier_wait = 26,            // the thread starts to wait for a phase
    mbarrier_wait_done = 27,       // the thread finds that phase complete
    mbarrier_phase_complete = 28,  // a phase completed; belongs to no thread
    bulk_read = 29,                // source of a bulk copy of `bytes` bytes
    bulk_write = 30,               // destination of a bulk copy
    blocked = 31,                  // the thread still waits when the launch ends
    barrier_wait_done = 32,        // the thread, after barrier_arrive at the cluster barrier, passes it
};
constexpr uint16_t no_thread = 0xffff;

struct Recorded {
    uint8_t kind;  // Access or EventKind
    bool has_value;
    uint16_t thread;
    uint16_t site;
    uint16_t memory;  // number of the accessed memory, or of a name; 0: none
    uint32_t bytes;   // for an access: bytes per lane
    uint32_t mask;
    int64_t offset;  // from the start of the memory; in shared memory, from the first byte of the block's shared memory
    uint64_t value[2];  // in shared memory: the value read, or the value after a write
};

struct RecordedMemory {
    Space space;
    char name[64];
    char dtype[16];
    uint32_t element_bytes;
    int64_t start;  // in shared memory: from the first byte of the block's shared memory; else the address modulo 128
    uint64_t bytes;
    const Region* region;
};

struct RecordedName {
    char text[48];
};

struct Recording {
    bool done;  // a recording exists
    bool cut;   // some events did not fit
    unsigned kernel;
    unsigned launch;  // number of the launch, from 0
    uint3 grid, block, index;
    unsigned threads;
    uint64_t shared_bytes;
    Growable<Recorded> events;
    Growable<RecordedMemory> memories;  // index is the number - 1
    Growable<RecordedName> names;       // index is the number - 1
};
extern Recording recording;
extern const Block* recorded_block;  // the recorded block while it runs, or null

inline bool is_recorded(const Block& block) { return SIM_UNLIKELY(recorded_block == &block); }

// Chooses the block to record from "launch,x,y,z"; an empty text chooses none. Returns false for any other text.
bool choose_recorded(const char* text);
bool some_block_is_chosen();
void forget_recording();
void count_launch();
void record_block(BlockState& block);  // starts recording if this is the chosen block
void end_recording();                  // the block or its launch has ended

// Call before the access is checked. Local memory and constant tables of the compiler are not recorded.
void record_access(ThreadState& thread, uintptr_t address, unsigned size_log2, Access access, const void* code);
// `shared`: an address in shared memory, or null.
void record(Thread& thread, EventKind kind, const void* code, const void* shared = nullptr, uint32_t bytes = 0);
void record_number(Thread& thread, EventKind kind, const void* code, int64_t number);
// Records that a barrier has completed. Call it while the threads that wait there are still marked as waiting.
void record_barrier(const Block& block, unsigned barrier);
void record_meeting(Warp& warp, unsigned participants);
// A bulk copy, or a thread's own copy, begins. `number`: the operation that reports the arrival.
void record_bulk(Thread& thread, const BulkCopy& copy, bool to_shared, bool reads, uint64_t number, const void* code);
void note_copy(uint64_t number, uintptr_t shared, uint32_t bytes);
void record_arrival(Thread& thread, uint64_t number);

}  // namespace sim::checks
