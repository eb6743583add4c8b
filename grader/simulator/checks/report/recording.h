// What one block of one launch does, kept thread by thread: grader/simulator/recording.py makes the events of warps of it.
//
// Nothing here costs a run that records nothing: the threads of the recorded block always have something `pending`, and so
// take the slow path at each access; what happens less often asks `is_recorded`.
#pragma once

#include "checks/core/access.h"

namespace sim {
struct BulkCopy;
struct Mbarrier;
}  // namespace sim

namespace sim::checks {

// The numbers below stand in the report; those of accesses are those of `Access`.
enum class Happening : uint8_t {
    arrives = 16,       // at a barrier, and waits there; known once it is complete
    arrives_only = 17,  // and goes on
    barrier_done = 18,  // by no thread
    meets = 19,         // the lanes of `mask` at a warp intrinsic; `bytes` 1: all that live
    exits = 20,
    commits = 21,          // what it has copied, as a group
    awaits_copies = 22,    // `offset`: groups that may be pending
    copy_arrives = 23,     // in shared memory
    mbarrier_begins = 24,  // these and the next: `offset` of the mbarrier
    mbarrier_arrival = 25,
    mbarrier_waits = 26,   // begins to
    mbarrier_passed = 27,  // has found a phase complete
    mbarrier_phase = 28,   // is complete; by no thread
    bulk_read = 29,        // the source of a bulk copy, `bytes` of it
    bulk_write = 30,       // its destination
    stuck = 31,            // waits there, and the launch has ended
    barrier_passed = 32,   // the cluster's, after an arrival
};
constexpr uint16_t nobody = 0xffff;

struct Recorded {
    uint8_t kind;  // Access or Happening
    bool has_value;
    uint16_t thread;
    uint16_t site;
    uint16_t memory;  // or name; 0: none
    uint32_t bytes;   // of an access: of each lane
    uint32_t mask;
    int64_t offset;     // from the memory's start; in shared memory from the block's first byte
    uint64_t value[2];  // of shared memory: what was read, or what was there after a write
};

struct RecordedMemory {
    Space space;
    char name[64];
    char dtype[16];
    uint32_t element_bytes;
    int64_t start;  // of shared memory: from the block's first byte; else the address modulo 128
    uint64_t bytes;
    const Region* region;
};

struct RecordedName {
    char text[48];
};

struct Recording {
    bool done;  // there is one
    bool cut;   // the block did more than could be kept
    unsigned kernel;
    unsigned launch;  // which, from 0
    uint32_t grid[3], block[3], index[3];
    unsigned threads;
    uint64_t shared_bytes;
    Growable<Recorded> events;
    Growable<RecordedMemory> memories;  // by number - 1
    Growable<RecordedName> names;       // by number - 1
};
extern Recording recording;
extern const Block* recorded_block;  // now running, or null

inline bool is_recorded(const Block& block) { return SIM_UNLIKELY(recorded_block == &block); }

// "launch,x,y,z": which block of which launch; anything else: none. False when it is neither.
bool choose_recorded(const char* text);
bool some_block_is_chosen();
void forget_recording();
void count_launch();
void record_block(BlockState& block);  // from here on, if it is the one
void end_recording();                  // its block has ended, or its launch

// Before the access, whatever will be said of it. Local memory and constants of the compiler are left out.
void record_access(ThreadState& thread, uintptr_t address, unsigned size_log2, Access access, const void* code);
// A part of shared memory, if `shared` is not null.
void record(Thread& thread, Happening kind, const void* code, const void* shared = nullptr, uint32_t bytes = 0);
void record_number(Thread& thread, Happening kind, const void* code, int64_t number);
void record_barrier(const Block& block,
                    unsigned barrier);  // is complete; a thread that waits there is still marked as waiting
void record_meeting(Warp& warp, unsigned participants);
// A bulk copy begins, or a copy of the thread's own; `number`: that of the operation that says when it has arrived.
void record_bulk(Thread& thread, const BulkCopy& copy, bool to_shared, bool reads, uint64_t number, const void* code);
void note_copy(uint64_t number, uintptr_t shared, uint32_t bytes);
void record_arrival(Thread& thread, uint64_t number);

}  // namespace sim::checks
