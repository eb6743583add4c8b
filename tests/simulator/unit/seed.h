// Reproducible random numbers from a seed.
#pragma once

#include <stdint.h>

namespace unit {

extern unsigned seed;

class Random {
  public:
    explicit Random(uint64_t stream = 0) : state_((uint64_t(seed) << 20 | 1) + stream) {}
    uint64_t word() {  // the generator splitmix64
        uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(word() % limit); }

  private:
    uint64_t state_;
};

}  // namespace unit
