// Vector clocks: which accesses are ordered before a thread, beyond the order that barriers imply.
//
// Whole-block and whole-warp barriers are plain times (epoch.h). Everything else that orders memory (partial
// __syncwarp, named barriers, atomics with fences) is kept here as FastTrack's vector clocks. Only the part that goes
// beyond the barriers is stored:
//
// clang-format off
//   VectorClock   what a thread has acquired: for lanes of its block the time of their last ordered access, and
//                 prefixes of logs
//   Release       what a thread publishes at a fence or a releasing operation: its own and all acquired accesses
//   SyncLog       the releases that one read of an atomic variable observes: those of a store and of the
//                 read-modify-write operations that follow it. The next store begins another log. FastTrack stores
//                 one vector clock for each variable instead, with an entry for each thread of the grid
// clang-format on
//
// These objects do not change once they are complete, except that a log grows. They are shared, and live until the
// launch ends.
//
// A release and an acquire synchronize if the scope of each includes the thread of the other (PTX ISA, "Memory
// Consistency Model": morally strong). So each log entry stores the scope of its release, and each log prefix in a
// VectorClock stores the scope of its acquire. Both scopes must include the acquiring block. That block's later
// releases pass on what it acquired.
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
    Scope scope;  // scope of the fence or of the releasing operation
    const VectorClock* known;
};

class SyncLog {
  public:
    explicit SyncLog(const void* variable) : variable_(variable) {}

    // `scope`, `thread` and `time` are those of the atomic operation that published the release. A thread that acquires
    // the release is also ordered after that operation.
    void append(const Release* release, Scope scope, unsigned thread = 0, uint32_t time = 0);
    // Appends those entries of another log that this thread made.
    void append_own(const SyncLog& log, uint32_t serial, unsigned thread);
    uint32_t length() const { return static_cast<uint32_t>(entries_.size()); }
    const void* variable() const { return variable_; }

  private:
    friend class Search;
    struct Entry {
        const Release* release;
        Scope scope;  // the narrower of two scopes: of the release, and of the atomic operation
        uint32_t thread;
        uint32_t time;
        uint32_t previous;  // index + 1 of the previous entry by the same block; 0: none
    };
    const void* variable_;
    bool narrow_ = false;  // some entry does not reach the whole device
    Growable<Entry> entries_;
    HashMap<uint32_t> last_of_block_;  // serial of a block -> index + 1 of its last entry
    // The vector clock of the entry with the index `entry`. It is stored only if the clock contains more than this log.
    struct Foreign {
        const VectorClock* known;
        uint32_t entry;
    };
    Growable<Foreign> foreign_;
};

// The row of a vector clock for one warp: for each lane, the time of its last access that is ordered before the thread
// that owns the clock.
struct WarpTimes {
    uint32_t time[32];
};

struct LogPrefix {
    SyncLog* log;
    uint32_t length;
    Scope scope;  // scope of the acquire
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
    // add_logs adds the log prefixes of `acquired`, as far as a fence of this scope acquires them. add_wider_logs adds
    // the log prefixes that such a fence acquires only in part: a later fence of wider scope may acquire the rest.
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
    const VectorClock* last_ = nullptr;  // the clock added last: consecutive threads often have the same one
    Growable<LogPrefix> logs_;
    WarpTimes rows_[32];
};

// Returns whether the serials belong to two blocks of one cluster.
bool same_cluster(uint32_t one, uint32_t other);

// Returns the time of the latest barrier of the block `serial` in `known`, which covers all accesses of that block
// before this time.
uint32_t known_barrier(const VectorClock* known, uint32_t serial);

// Returns whether `known` covers the access by `thread` of the block `serial` at `time`. `variable`: the address if the
// access was an atomic operation, else null.
bool covers(const VectorClock* known, uint32_t serial, unsigned thread, uint32_t time, const void* variable = nullptr);

}  // namespace sim::checks
