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
HashMap<bool> polled;           // the address of each cell through which threads synchronize
HashMap<bool> waits_at;         // WorkerState::waits_at of all workers

ShadowCell* cell_at(const Region& region, uintptr_t address) {
    return region.cells ? region.cells + ((address - region.base) >> region.shift) : nullptr;
}

uintptr_t start_of_cell(const Region& region, uintptr_t address) {
    return region.base + ((address - region.base) >> region.shift << region.shift);
}

void mark(uintptr_t address, unsigned bytes) {
    const Region* region = find_region(address);
    if (!region) return;
    for (unsigned byte = 0; byte < bytes; byte += 1u << region->shift) {
        if (ShadowCell* cell = cell_at(*region, address + byte)) {
            cell->second.set_synchronizes();
            polled.at(start_of_cell(*region, address + byte)) = true;
        }
    }
}

// Returns the code address of the race's atomic operation, or null.
const void* atomic_side(const Finding& race) {
    if (race.side.access == static_cast<uint8_t>(Access::atomic)) return race.side.address;
    return race.other.access == static_cast<uint8_t>(Access::atomic) ? race.other.address : nullptr;
}

}  // namespace

void note_volatile_read(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code) {
    ThreadExtras& extras = extras_of(thread);
    VolatileRead read = {address, bytes, code, {}};
    memcpy(read.value, reinterpret_cast<const void*>(address), bytes < sizeof read.value ? bytes : sizeof read.value);
    const VolatileRead& last = extras.last_read;
    bool again = last.address == address && last.code == code && thread.last_strong == LastStrong::volatile_read;
    bool changed = again && memcmp(last.value, read.value, sizeof read.value) != 0;
    if (changed || thread.thread->conditions) mark(address, bytes);
    extras.last_read = read;
    thread.last_strong = LastStrong::volatile_read;
}

void note_volatile_write(ThreadState& thread, uintptr_t address, unsigned bytes) {
    if (thread.last_strong == LastStrong::fence) mark(address, bytes);
    thread.last_strong = LastStrong::none;
}

void note_fence(ThreadState& thread) {
    LastStrong last = thread.last_strong;
    bool acquires = last == LastStrong::volatile_read || last == LastStrong::atomic_read;
    thread.last_strong = acquires ? LastStrong::none : LastStrong::fence;
}

void note_atomic(ThreadState& thread, const void* code, AtomicOp op, bool changed) {
    thread.last_strong = op == AtomicOp::store ? LastStrong::none : LastStrong::atomic_read;
    bool waits = op == AtomicOp::compare_and_swap || (!changed && op != AtomicOp::load && op != AtomicOp::store);
    if (waits) thread.worker->waits_at.at(reinterpret_cast<uint64_t>(code)) = true;
}

bool is_polled(uintptr_t cell) { return polled.find(cell) != nullptr; }

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
    if (!held.empty())
        each_worker(
            [](WorkerState& worker) { worker.waits_at.each([](uint64_t code, bool) { waits_at.at(code) = true; }); });
    for (const HeldRace& race : held) {
        const Region* region = find_region(race.address);
        const ShadowCell* cell = region ? cell_at(*region, race.address) : nullptr;
        const void* atomic = atomic_side(race.finding);
        bool exempt =
            atomic ? waits_at.find(reinterpret_cast<uint64_t>(atomic)) != nullptr : cell && cell->second.synchronizes();
        bool threads_poll = region && is_polled(start_of_cell(*region, race.address));
        if (!exempt && !threads_poll) add_finding(race.finding);
    }
    forget_held_races();
}

void forget_held_races() {
    held.clear();
    held_by_key.clear();
    polled.clear();
    waits_at.clear();
}

}  // namespace sim::checks
