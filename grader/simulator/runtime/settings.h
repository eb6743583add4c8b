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
    unsigned spin_rounds = 100000;
    Order order = Order::forward;
    uint64_t seed = 1;
    bool explain = false;         // print on stderr why a launch has one worker
    uint64_t check_blocks = 0;    // blocks of a launch that run with checks; 0: all
    uint64_t check_launches = 0;  // launches of a kernel that run with checks; 0: all
    uint64_t check_seed = 0;      // chooses the blocks
    bool has_check_seed = false;
    double note_seconds = 10;  // the time after which a program with all checks is told how to save time; 0: never
    size_t stack_bytes = 0;    // stack of one CUDA thread; 0: chosen for the process
};

extern Settings settings;

size_t stack_bytes();

int configure(const char* key, const char* value);  // returns 0, or -1 for an unknown key or an invalid value

}  // namespace sim
