#include "checks/synchronization/volatiles.h"

#include "checks/report/findings.h"

namespace sim::checks {

namespace {

struct HeldRace {
    Finding finding;
    uintptr_t address;
};
constexpr size_t max_held = size_t(1) << 16;
Growable<HeldRace> held;
HashMap<uint32_t> held_by_key;  // hash of a race's sites and address -> index in `held`, + 1

ShadowCell* cell_at(const Region& region, uintptr_t address) {
    return region.cells ? region.cells + ((address - region.base) >> region.shift) : nullptr;
}

void mark(uintptr_t address, unsigned bytes) {
    const Region* region = find_region(address);
    if (!region) return;
    for (unsigned byte = 0; byte < bytes; byte += 1u << region->shift)
        if (ShadowCell* cell = cell_at(*region, address + byte)) cell->second.set_synchronizes();
}

}  // namespace

void note_volatile_read(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code) {
    ThreadExtras& extras = extras_of(thread);
    VolatileRead read = {address, bytes, code};
    bool again = extras.last_read.address == address && extras.last_read.code == code;
    again = again && thread.last_strong == LastStrong::volatile_read;
    if (again || thread.thread->conditions) mark(address, bytes);
    extras.last_read = read;
    thread.last_strong = LastStrong::volatile_read;
}

void note_volatile_write(ThreadState& thread, uintptr_t address, unsigned bytes) {
    if (thread.last_strong == LastStrong::fence) mark(address, bytes);
    thread.last_strong = LastStrong::none;
}

void note_fence(ThreadState& thread) {
    LastStrong last = thread.last_strong;
    if (last == LastStrong::volatile_read) mark(thread.extras->last_read.address, thread.extras->last_read.bytes);
    bool acquires = last == LastStrong::volatile_read || last == LastStrong::atomic_read;
    thread.last_strong = acquires ? LastStrong::none : LastStrong::fence;
}

void hold_race(const Finding& finding, uintptr_t address) {
    uint64_t places =
        reinterpret_cast<uintptr_t>(finding.side.address) ^ mix(reinterpret_cast<uintptr_t>(finding.other.address));
    uint32_t& index = held_by_key.at(mix(places + address) + 1);
    if (index) {
        ++held[index - 1].finding.count;
    } else if (held.size() < max_held) {
        held.push({finding, address});
        index = static_cast<uint32_t>(held.size());
    }
}

void report_held_races() {
    for (const HeldRace& race : held) {
        const Region* region = find_region(race.address);
        const ShadowCell* cell = region ? cell_at(*region, race.address) : nullptr;
        if (!cell || !cell->second.synchronizes()) add_finding(race.finding);
    }
    forget_held_races();
}

void forget_held_races() {
    held.clear();
    held_by_key.clear();
}

}  // namespace sim::checks
