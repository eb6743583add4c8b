// What sim_configure sets.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

namespace sim {

struct Settings {
    bool checks = true;
    unsigned workers = 1;
    double watchdog_seconds = 10;
    Order order = Order::forward;
    uint64_t seed = 1;
    size_t stack_bytes = 128 << 10;
};

extern Settings settings;

int configure(const char* key, const char* value);  // 0, or -1 for an unknown key or a bad value

}  // namespace sim
