// Parsing of settings, passed as key and value in text by ctypes and command lines.
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arena.h"
#include "events.h"

namespace sim {

Settings settings;

size_t stack_bytes() {
    if (settings.stack_bytes) return settings.stack_bytes;
    // A CUDA thread may have 512 KB of local memory. A stack takes only address space until it is used. But the stacks
    // of 1024 threads take half a gigabyte of address space. So use smaller stacks if the process may use less than 4
    // GB of it.
    constexpr size_t full = (512 + 64) << 10, small = 128 << 10;
    rlimit limit;
    bool scarce = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < (static_cast<rlim_t>(4) << 30);
    return scarce ? small : full;
}

namespace {

bool parse(const char* text, double low, double high, double* number) {
    char* end;
    errno = 0;
    *number = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && *number >= low && *number <= high;
}

bool set_order(const char* value) {
    constexpr char random[] = "random:";
    if (strcmp(value, "forward") == 0) {
        settings.order = Order::forward;
    } else if (strcmp(value, "reverse") == 0) {
        settings.order = Order::reverse;
    } else if (strncmp(value, random, sizeof random - 1) == 0) {
        char* end;
        const char* digits = value + sizeof random - 1;
        uint64_t seed = strtoull(digits, &end, 10);
        if (end == digits || *end != '\0') return false;
        settings.order = Order::random;
        // The generator's state must not be zero. The multiplication makes the sequences of adjacent seeds differ.
        settings.seed = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
    } else {
        return false;
    }
    return true;
}

}  // namespace

int configure(const char* key, const char* value) {
    double number = 0;
    bool good;
    if (strcmp(key, "checks") == 0) {
        good = parse(value, 0, 1, &number);
        if (good) settings.checks = number != 0;
    } else if (strcmp(key, "workers") == 0) {
        good = parse(value, 1, max_workers, &number);
        if (good) settings.workers = static_cast<unsigned>(number);
    } else if (strcmp(key, "explain") == 0) {
        good = parse(value, 0, 1, &number);
        if (good) settings.explain = number != 0;
    } else if (strcmp(key, "watchdog_seconds") == 0) {
        good = parse(value, 0.001, 1e9, &number);
        if (good) settings.watchdog_seconds = number;
    } else if (strcmp(key, "spin_rounds") == 0) {
        good = parse(value, 100, 4e9, &number);
        if (good) settings.spin_rounds = static_cast<unsigned>(number);
    } else if (strcmp(key, "schedule") == 0) {
        good = set_order(value);
    } else if (strcmp(key, "note_seconds") == 0) {
        good = parse(value, 0, 1e9, &number);
        if (good) settings.note_seconds = number;
    } else if (strcmp(key, "check_blocks") == 0) {
        good = parse(value, 0, 1e18, &number);
        if (good) settings.check_blocks = static_cast<uint64_t>(number);
    } else if (strcmp(key, "check_launches") == 0) {
        good = parse(value, 0, 1e18, &number);
        if (good) settings.check_launches = static_cast<uint64_t>(number);
    } else if (strcmp(key, "check_seed") == 0) {
        good = parse(value, 0, 4294967295.0, &number);
        if (good) settings.check_seed = static_cast<uint64_t>(number);
        settings.has_check_seed = settings.has_check_seed || good;
    } else if (strcmp(key, "arena_megabytes") == 0) {
        good = parse(value, 1, 1 << 24, &number) && arena::set_megabytes(static_cast<size_t>(number));
    } else if (strcmp(key, "stack_kilobytes") == 0) {
        good = parse(value, 0, 1 << 20, &number) && (number == 0 || number >= 16);
        if (good) settings.stack_bytes = static_cast<size_t>(number) << 10;
    } else {
        return events::configure(key, value);
    }
    return good ? 0 : -1;
}

}  // namespace sim
