// The counters of each site, and the totals of a kernel: see counters.def.
#pragma once

#include <stdint.h>

namespace sim::checks {

struct Counters {
#define SITE_COUNTER(type, name, combine, text) type name;
#include "checks/counting/counters.def"

    void add(const Counters& other) {
#define SITE_COUNTER(type, name, combine, text) combine(name, other.name);
#include "checks/counting/counters.def"
    }

  private:
    static void sum(uint64_t& total, uint64_t value) { total += value; }
    static void max(uint32_t& most, uint32_t value) {
        if (most < value) most = value;
    }
};

struct RunCounters {
#define RUN_COUNTER(name, text) uint64_t name;
#include "checks/counting/counters.def"
};

}  // namespace sim::checks
