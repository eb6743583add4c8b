// What a thread knows to have happened before, beyond what barriers imply.
//
// Whole-block and whole-warp barriers are plain times (epoch.h). Everything else that orders memory (partial
// __syncwarp, named barriers, atomics with fences) is kept here as FastTrack's vector clocks. Only the part that goes
// beyond the barriers is stored:
//
// clang-format off
//   VectorClock   what a thread has learned: times up to which it knows the lanes of its block, and prefixes of logs
//   Release       what a thread publishes: all that it knows at a fence or a releasing operation
//   SyncLog       the releases that one read of an atomic variable observes: those of a store and of the
//                 read-modify-write operations that follow it. The next store begins another log. FastTrack would join
//                 them into one vector clock of the variable, with an entry for each thread of the grid
// clang-format on
//
// All are immutable once made, shared freely, and live until the launch ends.
//
// A release and an acquire synchronize if the scope of each includes the thread of the other (PTX ISA, "Memory
// Consistency Model": morally strong). So an entry of a log has the scope of its release, a known prefix that of its
// acquire. Both are compared with the block that acquired: what this block then publishes includes what it learned.
#pragma once

#include "checks/core/containers.h"
#include "checks/core/epoch.h"
#include "sim/scope.h"

namespace sim::checks {

struct VectorClock;

struct Release {
    uint32_t serial;        // serial of the block
    uint32_t time;          // the thread's accesses up to this time are covered
    uint32_t warp_time;     // last full barrier of the warp: all lanes' accesses before it are covered
    uint32_t barrier_time;  // last barrier of the block: all threads' accesses before it are covered
    uint16_t thread;
    Scope scope;  // of the fence or the operation
    const VectorClock* known;
};

class SyncLog {
  public:
    explicit SyncLog(const void* variable) : variable_(variable) {}

    // `scope` is that of the atomic operation itself; so are `thread` and `time`, if there was one: a thread that sees
    // the release is also ordered after that operation.
    void append(const Release* release, Scope scope, unsigned thread = 0, uint32_t time = 0);
    // Appends the entries of another log by this thread.
    void append_own(const SyncLog& log, uint32_t serial, unsigned thread);
    uint32_t length() const { return static_cast<uint32_t>(entries_.size()); }
    const void* variable() const { return variable_; }

  private:
    friend class Search;
    struct Entry {
        const Release* release;
        Scope scope;  // the narrower one of its release and its operation
        uint32_t thread;
        uint32_t time;
        uint32_t previous;  // entry of the same block, plus 1; 0 when there is none
    };
    const void* variable_;
    bool narrow_ = false;  // some entry does not reach the whole device
    Growable<Entry> entries_;
    HashMap<uint32_t> last_of_block_;  // serial -> entry plus 1
    // What entries know from other sources than this log, with the entry that introduced it.
    struct Foreign {
        const VectorClock* known;
        uint32_t entry;
    };
    Growable<Foreign> foreign_;
};

// The times up to which the accesses of a warp's lanes are known.
struct WarpTimes {
    uint32_t time[32];
};

struct LogPrefix {
    SyncLog* log;
    uint32_t length;
    Scope scope;  // of the acquire
};

struct VectorClock {
    uint32_t serial;     // serial of the block to which `warps` belong, and which has acquired the logs
    uint32_t warp_mask;  // the warps that have a row
    WarpTimes* warps;    // one row per bit, in ascending order
    LogPrefix* logs;
    uint32_t log_count;
    const WarpTimes* row(unsigned warp) const {
        if (!(warp_mask >> warp & 1)) return nullptr;
        return warps + __builtin_popcount(warp_mask & ((1u << warp) - 1));
    }
};

// The join of several vector clocks of one block: the maximum of each entry.
class VectorClockBuilder {
  public:
    VectorClockBuilder(Pool& pool, uint32_t serial) : pool_(pool), serial_(serial) {}
    void add(const VectorClock* known);
    // The logs of `acquired` as a fence of this scope acquires them, and those of which such a fence leaves a part.
    void add_logs(const VectorClock* acquired, Scope scope);
    void add_wider_logs(const VectorClock* acquired, Scope scope);
    void add_lane(unsigned warp, unsigned lane, uint32_t time);
    void add_log(SyncLog* log, uint32_t length, Scope scope = Scope::device);
    // Returns null when nothing is known. `keep_rows` is false after a barrier of the whole block, which subsumes them.
    const VectorClock* finish(bool keep_rows = true);

  private:
    Pool& pool_;
    uint32_t serial_;
    uint32_t warp_mask_ = 0;
    const VectorClock* last_ = nullptr;  // consecutive threads often know the same
    Growable<LogPrefix> logs_;
    WarpTimes rows_[32];
};

// Returns whether the serials belong to two blocks of one cluster.
bool same_cluster(uint32_t one, uint32_t other);

// Returns the latest known barrier of the block `serial`: `known` covers its threads' accesses before that time.
uint32_t known_barrier(const VectorClock* known, uint32_t serial);

// Returns whether `known` covers the access by `thread` of the block `serial` at `time`. `variable`: if the access was
// an atomic operation, its variable.
bool covers(const VectorClock* known, uint32_t serial, unsigned thread, uint32_t time, const void* variable = nullptr);

}  // namespace sim::checks
