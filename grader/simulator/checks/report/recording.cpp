#include "checks/report/recording.h"

#include <stdio.h>

#include "runtime/async_operations.h"
#include "sim/shared.h"

namespace sim::checks {

Recording recording;
const Block* recorded_block = nullptr;

namespace {

constexpr unsigned max_events = 3u << 16;  // limit for all threads together; each thread gets an equal share
constexpr unsigned least_share = 256;

// A value in shared memory that the recording reads later, when the access or the copy has been performed.
struct Awaited {
    size_t event;
    const void* address;
    uint8_t bytes;
    uint8_t looks;
};

struct Copy {
    uint64_t number;
    uintptr_t shared;
    uint32_t bytes;
};

struct {
    bool wanted;
    unsigned launch, launches;
    uint3 index;
} choice;

BlockState* state = nullptr;  // state of the recorded block
unsigned share;
bool full;            // some thread has used its share
unsigned full_warps;  // mask of the warps that record no more events
uint16_t counts[max_threads_per_block];
const void* waits_at[max_threads_per_block];  // mbarrier at which the thread waits, if that is its last event
Growable<Awaited> awaited;
Growable<Copy> copies;

void read_value(Recorded& event, const void* address, unsigned bytes) {
    memcpy(event.value, address, bytes);
    event.has_value = true;
}

// Reads the values of earlier writes, each of which happens after its hook. For a structure copy both hooks (read and
// write) run before the move. So the value is usually read at the second event of the thread after the write. It is
// read at the first event after the write if that accesses the same bytes.
void settle_values(uint16_t thread, unsigned kind, uintptr_t address, unsigned bytes) {
    bool access = kind < static_cast<unsigned>(EventKind::barrier_wait);
    awaited.keep([=](Awaited& value) {
        Recorded& event = recording.events[value.event];
        bool copy = event.kind == static_cast<uint8_t>(EventKind::copy_complete);
        bool same = event.thread == thread && (copy ? kind == event.kind : access);
        uintptr_t at = reinterpret_cast<uintptr_t>(value.address);
        bool overlaps = address < at + value.bytes && at < address + bytes;
        if (same && (copy || (!overlaps && ++value.looks < 2))) return true;
        read_value(event, value.address, value.bytes);
        return false;
    });
}

Recorded* add(uint16_t thread, unsigned kind, const void* code, uintptr_t address = 0, unsigned bytes = 0) {
    if (!awaited.empty()) settle_values(thread, kind, address, bytes);
    if (full_warps == ~0u || (thread != no_thread && full_warps >> thread / lanes_per_warp & 1)) return nullptr;
    if (thread != no_thread) {
        if (counts[thread] >= share) {
            full = recording.cut = true;
            return nullptr;
        }
        ++counts[thread];
        waits_at[thread] = nullptr;
    }
    Recorded event = {};
    event.kind = static_cast<uint8_t>(kind);
    event.thread = thread;
    event.site = code ? site_id(code) : 0;
    event.bytes = bytes;
    return &recording.events.push(event);
}

Recorded* add(const Thread& thread, EventKind kind, const void* code) {
    return add(thread.linear, static_cast<unsigned>(kind), code);
}

uint16_t memory_number(const Region& region, Space space) {
    for (size_t i = 0; i < recording.memories.size(); ++i)
        if (recording.memories[i].region == &region) return static_cast<uint16_t>(i + 1);
    RecordedMemory memory = {};
    memory.space = space;
    memcpy(memory.name, region.name, sizeof memory.name);
    memcpy(memory.dtype, region.dtype, sizeof memory.dtype);
    memory.element_bytes = region.element_bytes;
    memory.start = static_cast<int64_t>(space == Space::shared ? region.base - state->shared->base : region.base % 128);
    memory.bytes = region.bytes;
    memory.region = &region;
    recording.memories.push(memory);
    return static_cast<uint16_t>(recording.memories.size());
}

// Finds the recorded memory that holds the address, and the offset in it. Returns false if that memory is not recorded.
bool locate(Recorded& event, uintptr_t address) {
    BlockState* owner = owner_of_shared(*state, address);
    Region* region = owner ? find_shared(*owner, address) : find_region(address);
    Space space = owner ? Space::shared : region ? region->space : Space::global;
    if (!region && owner) region = nearest_shared(*owner, address);
    ArenaRange arena = arena_range();
    if (!region && arena.base && address - reinterpret_cast<uintptr_t>(arena.base) < arena.bytes)
        region = nearest_region(address);
    if (!region) return false;
    if (owner && owner != state) space = Space::distributed;
    event.memory = memory_number(*region, space);
    uintptr_t base = owner ? owner->shared->base : region->base;
    event.offset = static_cast<int64_t>(address - base);
    return true;
}

uint16_t name_number(const char* text) {
    RecordedName name = {};
    strncpy(name.text, text, sizeof name.text - 1);
    for (size_t i = 0; i < recording.names.size(); ++i)
        if (!strcmp(recording.names[i].text, name.text)) return static_cast<uint16_t>(i + 1);
    recording.names.push(name);
    return static_cast<uint16_t>(recording.names.size());
}

void drop_last() { recording.events.truncate(recording.events.size() - 1); }

}  // namespace

bool choose_recorded(const char* text) {
    unsigned launch, x, y, z;
    char rest;
    choice.wanted = sscanf(text, "%u,%u,%u,%u%c", &launch, &x, &y, &z, &rest) == 4;
    if (choice.wanted) {
        choice.launch = launch;
        choice.index = {x, y, z};
    }
    return choice.wanted || !strcmp(text, "none");
}

bool some_block_is_chosen() { return choice.wanted; }

void forget_recording() {
    choice.launches = 0;
    recorded_block = nullptr;
    recording.done = recording.cut = false;
    recording.events.clear();
    recording.memories.clear();
    recording.names.clear();
}

void count_launch() { ++choice.launches; }

void record_block(BlockState& block) {
    const Block& running = *block.block;
    if (!choice.wanted || choice.launches != choice.launch + 1 || recording.done) return;
    if (memcmp(&running.index, &choice.index, sizeof choice.index) != 0) return;
    state = &block;
    recorded_block = &running;
    share = max_events / running.thread_count > least_share ? max_events / running.thread_count : least_share;
    full = false;
    full_warps = 0;
    memset(counts, 0, sizeof counts);
    memset(waits_at, 0, sizeof waits_at);
    awaited.clear();
    copies.clear();
    const Launch& launch = *running.launch;
    recording.grid = launch.grid;
    recording.block = launch.block;
    recording.index = running.index;
    recording.kernel = the_launch.kernel;
    recording.launch = choice.launch;
    recording.threads = running.thread_count;
    recording.done = true;
    for (unsigned i = 0; i < running.thread_count; ++i) block.threads[i].recorded = block.threads[i].pending = true;
}

void end_recording() {
    settle_values(no_thread, static_cast<unsigned>(EventKind::thread_exit), 0, 0);
    const Block& block = *recorded_block;
    for (unsigned i = 0; i < block.thread_count; ++i) {
        const Thread& thread = block.threads[i];
        if (thread.state != State::waiting) continue;
        if (Recorded* event = add(thread, EventKind::blocked, thread.call_address))
            event->memory = name_number(wait_name(thread));
    }
    // List the block's shared arrays, including those that were never accessed. find_shared() registers the arrays of
    // this launch.
    find_shared(*state, 0);
    for (size_t i = 0; i < state->shared->known; ++i) memory_number(*state->shared->regions[i], Space::shared);
    recording.shared_bytes = block.launch->static_shared_bytes + block.launch->dynamic_shared_bytes;
    recorded_block = nullptr;
    state = nullptr;
}

void record_access(ThreadState& thread, uintptr_t address, unsigned size_log2, Access access, const void* code) {
    const Launch& launch = *thread.block->block->launch;
    if (is_local(thread, address)) return;
    if (address - reinterpret_cast<uintptr_t>(launch.parameters) < launch.parameter_bytes) return;
    unsigned bytes = 1u << size_log2;
    Recorded* event = add(thread.thread->linear, static_cast<unsigned>(access), code, address, bytes);
    if (!event) return;
    if (!locate(*event, address)) {
        --counts[thread.thread->linear];
        return drop_last();
    }
    const RecordedMemory& memory = recording.memories[event->memory - 1u];
    if (memory.space != Space::shared || !memory.region->contains(address, bytes) || bytes > sizeof event->value)
        return;
    const void* data = reinterpret_cast<const void*>(address);
    if (access == Access::read || access == Access::volatile_read)
        read_value(*event, data, bytes);
    else if (access != Access::async_read && access != Access::async_write)
        awaited.push({recording.events.size() - 1, data, static_cast<uint8_t>(bytes), 0});
}

void record(Thread& thread, EventKind kind, const void* code, const void* shared, uint32_t bytes) {
    uint16_t number = thread.linear;
    bool none = kind == EventKind::barrier_complete || kind == EventKind::mbarrier_phase_complete;
    if (kind == EventKind::mbarrier_wait && waits_at[number] == shared) return;
    Recorded* event = add(none ? no_thread : number, static_cast<unsigned>(kind), code);
    if (event && shared) {
        locate(*event, reinterpret_cast<uintptr_t>(shared));
        event->bytes = bytes;
    }
    if (kind == EventKind::mbarrier_wait) waits_at[number] = shared;
    if (event && kind == EventKind::copy_complete && bytes <= sizeof event->value)
        awaited.push({recording.events.size() - 1, shared, static_cast<uint8_t>(bytes), 0});
}

void record_number(Thread& thread, EventKind kind, const void* code, int64_t number) {
    if (Recorded* event = add(thread, kind, code)) event->offset = number;
}

void record_barrier(const Block& block, unsigned barrier) {
    // A thread has used its share: stop all warps at this barrier, so that no warp's events continue without the
    // others'.
    if (full) full_warps = ~0u;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        const Warp& warp = block.warps[w];
        for (unsigned rest = warp.at_barrier[barrier].waiting; rest; rest &= rest - 1) {
            const Thread& thread = warp.threads[__builtin_ctz(rest)];
            if (Recorded* event = add(thread, EventKind::barrier_wait, thread.call_address)) {
                event->offset = barrier;
                event->memory = name_number(wait_name(thread));
            }
        }
    }
    if (Recorded* event = add(no_thread, static_cast<unsigned>(EventKind::barrier_complete), nullptr))
        event->offset = barrier;
}

void record_meeting(Warp& warp, unsigned participants) {
    const Thread& first = warp.threads[__builtin_ctz(participants)];
    for (unsigned rest = participants; full && rest; rest &= rest - 1)
        if (counts[warp.threads[__builtin_ctz(rest)].linear] >= share) full_warps |= 1u << warp.index;
    if (Recorded* event = add(first, EventKind::warp_sync, first.call_address)) {
        event->mask = participants;
        event->bytes = participants == (warp.existing & ~warp.exited);
        event->memory = name_number(wait_name(first));
        for (unsigned rest = participants & (participants - 1); rest; rest &= rest - 1)
            ++counts[warp.threads[__builtin_ctz(rest)].linear];
    }
}

void record_bulk(Thread& thread, const BulkCopy& copy, bool to_shared, bool reads, uint64_t number, const void* code) {
    if (number && reinterpret_cast<uintptr_t>(copy.shared))
        note_copy(number, reinterpret_cast<uintptr_t>(copy.shared), copy.bytes());
    const char* global = nullptr;
    each_row(copy, [&](bool inside, uint32_t, const char* row, uint32_t) {
        if (inside && !global) global = row;
    });
    if (!to_shared) record(thread, EventKind::bulk_read, code, copy.shared, copy.bytes());
    if (global && reads)
        record(thread, to_shared ? EventKind::bulk_read : EventKind::bulk_write, code, global, copy.bytes());
    if (to_shared) record(thread, EventKind::bulk_write, code, copy.shared, copy.bytes());
}

void note_copy(uint64_t number, uintptr_t shared, uint32_t bytes) { copies.push({number, shared, bytes}); }

void record_arrival(Thread& thread, uint64_t number) {
    copies.keep([&](const Copy& copy) {
        if (copy.number != number) return true;
        record(thread, EventKind::copy_complete, nullptr, reinterpret_cast<const void*>(copy.shared), copy.bytes);
        return false;
    });
}

}  // namespace sim::checks
