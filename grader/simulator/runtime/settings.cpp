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

// A setting whose value is a number in a range.
struct NumberSetting {
    const char* key;
    double low, high;
    bool (*set)(double number);
};

#define SET(FIELD)                                                      \
    [](double number) {                                                 \
        settings.FIELD = static_cast<decltype(settings.FIELD)>(number); \
        return true;                                                    \
    }
constexpr NumberSetting numbers[] = {
    {"checks", 0, 1, SET(checks)},
    {"workers", 1, max_workers, SET(workers)},
    {"explain", 0, 1, SET(explain)},
    {"watchdog_seconds", 0.001, 1e9, SET(watchdog_seconds)},
    {"spin_rounds", 100, 4e9, SET(spin_rounds)},
    {"note_seconds", 0, 1e9, SET(note_seconds)},
    {"check_blocks", 0, 1e18, SET(check_blocks)},
    {"check_launches", 0, 1e18, SET(check_launches)},
    {"check_seed", 0, 4294967295.0,
     [](double number) {
         settings.check_seed = static_cast<uint64_t>(number);
         return settings.has_check_seed = true;
     }},
    {"arena_megabytes", 1, 1 << 24, [](double number) { return arena::set_megabytes(static_cast<size_t>(number)); }},
    {"stack_kilobytes", 0, 1 << 20,
     [](double number) {
         if (number != 0 && number < 16) return false;
         settings.stack_bytes = static_cast<size_t>(number) << 10;
         return true;
     }},
};
#undef SET

}  // namespace

int configure(const char* key, const char* value) {
    if (strcmp(key, "schedule") == 0) return set_order(value) ? 0 : -1;
    for (const NumberSetting& setting : numbers) {
        if (strcmp(key, setting.key) != 0) continue;
        double number;
        return parse(value, setting.low, setting.high, &number) && setting.set(number) ? 0 : -1;
    }
    return events::configure(key, value);
}

}  // namespace sim
