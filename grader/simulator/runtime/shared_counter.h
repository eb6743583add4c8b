// Atomic numbers shared by workers. They offer less than std::atomic, and a file that includes them compiles in half
// the time.
#pragma once

#include <stdint.h>

namespace sim {

// Returns 0, 1, 2, ... on successive calls from any thread.
class Counter {
  public:
    uint64_t next() { return __atomic_fetch_add(&value_, 1, __ATOMIC_RELAXED); }

  private:
    uint64_t value_ = 0;
};

// A flag that is set once and never cleared.
class Flag {
  public:
    bool is_raised() const { return __atomic_load_n(&raised_, __ATOMIC_RELAXED); }
    // returns whether this call raised it
    bool raise() { return !__atomic_exchange_n(&raised_, true, __ATOMIC_ACQ_REL); }

  private:
    bool raised_ = false;
};

}  // namespace sim
