// Numbers that several workers change. Less than std::atomic, and a file that includes it compiles in half the time.
#pragma once

#include <stdint.h>

namespace sim {

// Hands out 0, 1, 2, ... to whoever asks.
class Counter {
  public:
    uint64_t next() { return __atomic_fetch_add(&value_, 1, __ATOMIC_RELAXED); }

  private:
    uint64_t value_ = 0;
};

// Raised once; nobody lowers it.
class Flag {
  public:
    bool is_raised() const { return __atomic_load_n(&raised_, __ATOMIC_RELAXED); }
    bool raise() { return !__atomic_exchange_n(&raised_, true, __ATOMIC_ACQ_REL); }  // whether this call raised it

  private:
    bool raised_ = false;
};

}  // namespace sim
