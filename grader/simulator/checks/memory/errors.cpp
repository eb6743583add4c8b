// Findings for synchronization errors, faults and refused calls that the runtime reports.
#include "checks/memory/errors.h"

#include <dlfcn.h>
#include <stdio.h>

#include "checks/core/access.h"
#include "checks/report/report.h"
#include "runtime/async_operations.h"
#include "runtime/events.h"

namespace sim::checks {

Finding finding_for(FindingKind kind, const Thread* thread, const void* address) {
    if (thread && thread->checks) return finding_at(kind, *static_cast<ThreadState*>(thread->checks), address);
    Finding finding = new_finding(kind);
    finding.side.address = address;
    finding.kernel = the_launch.launch ? the_launch.kernel : ~0u;
    if (thread) {
        finding.side.has_thread = true;
        finding.side.thread = thread->linear;
        finding.side.block_known = true;
        finding.side.block = thread->block->index;
        finding.side.index = thread->index;
    }
    return finding;
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

namespace {

// The kind of finding for each SyncError.
constexpr FindingKind sync_errors[] = {
    FindingKind::deadlock,
    FindingKind::barrier_sites_differ,
    FindingKind::own_lane_not_in_mask,
    FindingKind::collectives_differ,
    FindingKind::shuffle_from_inactive_lane,
    FindingKind::barrier_threads_invalid,
    FindingKind::grid_sync_not_cooperative,
    FindingKind::mbarrier_not_initialized,
    FindingKind::instruction_misused,
};

// The kind of finding for each FaultKind.
constexpr FindingKind faults[] = {
    FindingKind::illegal_address,  FindingKind::misaligned,
    FindingKind::division_by_zero, FindingKind::illegal_instruction,
    FindingKind::stack_overflow,   FindingKind::infinite_loop,
    FindingKind::out_of_memory,    FindingKind::trap,
    FindingKind::assertion,        FindingKind::shared_memory_exceeded,
    FindingKind::device_exception, FindingKind::missing_return,
    FindingKind::out_of_bounds,
};

MbarrierPhase phase_of(const Thread& thread) {
    if (thread.wait != Wait::mbarrier || !thread.mbarrier) return {};
    const Mbarrier& barrier = *thread.mbarrier;
    return {true, barrier.phase, barrier.pending, barrier.expected, barrier.bytes};
}

// Lists where the threads of a deadlocked block wait. Threads at the same call are one entry.
void describe_waits(const Block& block, Finding& finding) {
    BlockedThreads blocked = {};
    Waits& waits = blocked.waits;
    Wait kinds[sizeof waits.places / sizeof *waits.places];
    for (unsigned i = 0; i < block.thread_count; ++i) {
        const Thread& thread = block.threads[i];
        if (thread.state == State::exited) ++blocked.exited;
        if (thread.state != State::waiting) continue;
        unsigned p = 0;
        while (p < waits.count && !(waits.places[p].address == thread.call_address && kinds[p] == thread.wait)) ++p;
        if (p == sizeof waits.places / sizeof *waits.places) continue;
        if (p == waits.count) {
            kinds[waits.count] = thread.wait;
            waits.places[waits.count++] = {
                0, i, wait_name(thread), thread.call_address, thread.wait_site.line, phase_of(thread)};
        }
        ++waits.places[p].threads;
    }
    const Waiting* places = waits.places;
    if (waits.count) finding.side.address = places[0].address, finding.side.line = places[0].line;
    if (waits.count > 1) finding.other.address = places[1].address, finding.other.line = places[1].line;
    finding.payload = blocked;
}

}  // namespace

void sync_error(SyncError kind, Block& block, Thread* thread, const char* detail) {
    FindingKind name = sync_errors[static_cast<unsigned>(kind)];
    const Thread* example = thread ? thread : &block.threads[0];
    Finding finding = finding_for(name, example, example->call_address);
    finding.side.line = example->wait_site.line;
    if (auto* why = std::get_if<Reason>(&finding.payload)) why->reason = detail;
    if (kind == SyncError::deadlock) describe_waits(block, finding);
    const Thread* other = nullptr;
    if (kind == SyncError::barrier_sites_differ) other = block.barriers[0].first;
    if (thread && kind == SyncError::own_lane_not_in_mask) finding.payload = Mask{thread->wait_mask};
    if (thread && kind == SyncError::shuffle_from_inactive_lane)
        finding.payload = Lane{thread->warp->argument[thread->lane]};
    if (thread && kind == SyncError::collectives_differ) {
        const Warp& warp = *thread->warp;
        for (unsigned rest = thread->wait_mask & warp.at_collective; rest && !other; rest &= rest - 1) {
            unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
            if (warp.tag[lane] != warp.tag[thread->lane]) other = &warp.threads[lane];
        }
    }
    if (other) {
        Finding there = finding_for(name, other, other->call_address);
        finding.other = there.side;
        finding.other.line = other->wait_site.line;
        finding.payload = TwoOperations{wait_name(*thread), wait_name(*other)};
    }
    add_finding(finding);
}

namespace {

bool same_library(const void* a, const void* b) {
    Dl_info of_a, of_b;
    return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

// Returns the place to report for a stack overflow. The instruction that overflows is arbitrary: it may be inside a
// check or have no source line. So report the kernel's place nearest to the end of the stack: its last access or call.
const void* last_place_on_stack(const Fault& fault) {
    auto* word = reinterpret_cast<const void* const*>(fault.thread->fiber->low);
    auto* end = reinterpret_cast<const void* const*>(fault.thread->fiber->top);
    const void* call = nullptr;
    for (unsigned checked_words = 0; word < end && checked_words < 4096; ++word, ++checked_words) {
        if (!*word) continue;
        if (is_site(*word)) return *word;
        if (!call && same_library(*word, fault.address)) call = *word;
    }
    return call;
}

}  // namespace

void fault(Launch& launch, const Fault& fault) {
    FindingKind kind = faults[static_cast<unsigned>(fault.kind)];
    auto data = reinterpret_cast<uint64_t>(fault.data);
    if (fault.kind == FaultKind::illegal_address && data < 65536) kind = FindingKind::null_pointer;
    // An out-of-bounds index of a local array may have caused the fault. Report the index instead of the fault.
    ThreadState* state = fault.thread ? state_of(*fault.thread) : nullptr;
    if (state && state->pending && state->extras && state->extras->has_index) {
        report_index(*state);
        state->pending = false;
        return;
    }
    const void* address = fault.address;
    if (fault.kind == FaultKind::stack_overflow && fault.thread) {
        if (const void* place = last_place_on_stack(fault)) address = place;
    }
    Finding finding = finding_for(kind, fault.thread, address);
    if (fault.thread) finding.side.fallback = fault.thread->call_address;
    if (auto* where = std::get_if<Address>(&finding.payload)) where->address = data;
    if (fault.kind == FaultKind::local_bounds) finding.place = place_of(&unknown_local, 0);
    if (auto* why = std::get_if<Reason>(&finding.payload)) why->reason = fault.detail;
    if (auto* why = std::get_if<EndlessLoop>(&finding.payload)) why->reason = fault.detail;
    finding.launch = launch.id;
    add_finding(finding);
}

bool waits_for_host(const void* data) {
    auto address = reinterpret_cast<uintptr_t>(data);
    const Region* region = find_region(address);
    if (!region || !host_shares(*region) || the_launch.changed.find(address)) return false;
    if (!region->cells) return true;
    uint32_t written = region->cells[(address - region->base) >> region->shift].write.serial();
    return written < the_launch.start_serial;
}

void bad_free(const void* pointer, const void* address) {
    auto data = reinterpret_cast<uint64_t>(pointer);
    const Region* region = nearest_region(data);
    bool again = region && region->kind == RegionKind::device_heap && region->freed && region->base == data;
    Finding finding = finding_for(again ? FindingKind::double_free : FindingKind::bad_free, current_thread, address);
    finding.payload = Address{data};
    add_finding(finding);
}

void waits_for_unrecorded_event(const char* call, const void* address) {
    Finding finding = finding_for(FindingKind::event_not_recorded, nullptr, address);
    finding.payload = Call{call};
    add_finding(finding);
}

void not_its_own(const char* kind, const void* data, size_t bytes, bool write, const void* code) {
    FindingKind found = FindingKind::not_its_memory;
    for (FindingKind other : {FindingKind::not_its_stack, FindingKind::not_its_function, FindingKind::host_access})
        if (!strcmp(kind, name_of(other))) found = other;
    Finding finding = finding_for(found, current_thread, code);
    finding.side.access = static_cast<uint8_t>(write ? Access::write : Access::read);
    finding.bytes = static_cast<uint32_t>(bytes);
    auto address = reinterpret_cast<uintptr_t>(data);
    if (found == FindingKind::host_access) {
        Region* region = find_region(address);
        finding.place = place_of(region ? region : nearest_region(address), address);
    } else {
        finding.payload = Address{address};
    }
    add_finding(finding);
}

void default_stream_used(const char* what, const void* address) {
    Finding finding = finding_for(FindingKind::default_stream, nullptr, address);
    finding.payload = Call{what};
    add_finding(finding);
}

void refused(const Launch* launch, const char* call, int cuda_error, const char* why, const void* address) {
    Finding finding = new_finding(FindingKind::refused);
    finding.side.address = address;
    if (launch) finding.side.fallback = launch->caller;
    finding.payload = RefusedCall{call, static_cast<uint64_t>(cuda_error), why};
    add_finding(finding);
    note_failed_launch();
}

}  // namespace sim::events
