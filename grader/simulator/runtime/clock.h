// Vector clocks of streams: which operations happened before which.
//
// A lane is a sequence of operations, each ordered after the one before it: a stream, or the part of a graph that was
// captured from one stream. Operations of a lane are numbered from 1. A clock holds, for each lane, the number of
// operations that are known to be complete.
#pragma once

#include "growable.h"

namespace sim {

class Clock {
  public:
    Clock() = default;
    Clock(const Clock& other) { join(other); }
    Clock& operator=(const Clock& other) {
        if (this == &other) return *this;
        clear();
        join(other);
        return *this;
    }

    uint32_t at(uint32_t lane) const { return lane < lanes() ? last_[lane] : 0; }
    bool covers(uint32_t lane, uint32_t number) const { return number <= at(lane); }
    bool covers(const Clock& other) const {
        for (uint32_t lane = 0; lane < other.lanes(); ++lane)
            if (!covers(lane, other.last_[lane])) return false;
        return true;
    }
    void raise(uint32_t lane, uint32_t number) {
        if (number <= at(lane)) return;
        while (lanes() <= lane) last_.push(0);
        last_[lane] = number;
    }
    // Takes the maximum of each entry.
    void join(const Clock& other) {
        for (uint32_t lane = 0; lane < other.lanes(); ++lane) raise(lane, other.last_[lane]);
    }
    uint32_t lanes() const { return static_cast<uint32_t>(last_.size()); }
    void clear() { last_.clear(); }

  private:
    Growable<uint32_t> last_;
};

constexpr unsigned in_graph = ~0u;  // the stream of a graph node that was not captured from a stream

// The name of an operation, and its place in the order of its stream.
struct WorkPlace {
    const char* call = nullptr;     // "cudaMemcpyAsync", ...; null for a kernel, which has its own name
    const void* address = nullptr;  // the address of the call
    unsigned stream = 0;  // number in findings: 0 is the default stream, others follow in creation order; or in_graph
    uint32_t lane = 0;
    uint32_t number = 0;  // number of the operation in its lane
};

// One operation of a stream, as it is passed to the checks.
struct Work : WorkPlace {
    const Clock* known = nullptr;  // the operations that it is ordered after
    bool alone = true;             // the program has one stream, so the operation is ordered after all earlier ones
};

}  // namespace sim
