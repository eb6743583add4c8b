// The settings that sim_configure changes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

namespace sim {

struct Settings {
    bool checks = true;
    unsigned workers = 1;
    double watchdog_seconds = 10;
    unsigned spin_rounds = 1000000;
    Order order = Order::forward;
    uint64_t seed = 1;
    bool explain = false;    // print on stderr why a launch has one worker
    size_t stack_bytes = 0;  // stack of one CUDA thread; 0: chosen for the process
};

extern Settings settings;

size_t stack_bytes();

int configure(const char* key, const char* value);  // returns 0, or -1 for an unknown key or an invalid value

}  // namespace sim
