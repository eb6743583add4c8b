// Synchronization errors, faults and refused calls, as the runtime reports them.
#include "checks/memory/errors.h"

#include <dlfcn.h>
#include <stdio.h>

#include "checks/core/access.h"
#include "checks/report/report.h"
#include "runtime/events.h"

namespace sim::checks {

Finding finding_for(Check check, const char* kind, const Thread* thread, const void* address) {
    if (thread && thread->checks) return finding_at(check, kind, *static_cast<ThreadState*>(thread->checks), address);
    Finding finding = {};
    finding.check = check;
    finding.kind = kind;
    finding.side.address = address;
    finding.count = 1;
    finding.kernel = the_launch.launch ? the_launch.kernel : ~0u;
    if (thread) {
        finding.side.has_thread = true;
        finding.side.thread = thread->linear;
        finding.side.block_known = true;
        finding.side.block[0] = thread->block->index.x;
        finding.side.block[1] = thread->block->index.y;
        finding.side.block[2] = thread->block->index.z;
        finding.side.index[0] = thread->index.x;
        finding.side.index[1] = thread->index.y;
        finding.side.index[2] = thread->index.z;
    }
    return finding;
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

namespace {

// By SyncError.
const char* const sync_errors[] = {
    "deadlock",
    "barrier_sites_differ",
    "own_lane_not_in_mask",
    "collectives_differ",
    "shuffle_from_inactive_lane",
    "barrier_threads_invalid",
    "grid_sync_not_cooperative",
    "mbarrier_not_initialized",
    "instruction_misused",
};

// By FaultKind.
constexpr struct {
    const char* name;
    Check check;
} faults[] = {
    {"illegal_address", Check::memcheck}, {"misaligned", Check::memcheck},
    {"division_by_zero", Check::fault},   {"illegal_instruction", Check::fault},
    {"stack_overflow", Check::memcheck},  {"infinite_loop", Check::synccheck},
    {"out_of_memory", Check::fault},      {"trap", Check::fault},
    {"assertion", Check::fault},          {"shared_memory_exceeded", Check::fault},
    {"device_exception", Check::fault},
};

void set_detail(Finding& finding, const char* text) {
    if (text) strncpy(finding.detail, text, sizeof finding.detail - 1);
}

// Whether a thread says itself what it waits for.
bool has_label(Wait wait) { return wait == Wait::exchange || wait == Wait::warpgroup || wait == Wait::mbarrier; }

// "32 threads wait at __syncthreads, {site 7}; ..." with the numbers of the sites, which the reader names.
void describe_waits(const Block& block, Finding& finding) {
    struct Place {
        Wait wait;
        uint8_t detail;
        const char* label;
        const void* address;
        unsigned line;
        unsigned count;
        unsigned first;
    } places[8];
    unsigned count = 0, exited = 0;
    for (unsigned i = 0; i < block.thread_count; ++i) {
        const Thread& thread = block.threads[i];
        if (thread.state == State::exited) ++exited;
        if (thread.state != State::waiting) continue;
        unsigned p = 0;
        while (p < count && !(places[p].address == thread.call_address && places[p].wait == thread.wait)) ++p;
        if (p == 8) continue;
        if (p == count) {
            const char* label = has_label(thread.wait) ? thread.wait_label : nullptr;
            places[count++] = {
                thread.wait, thread.wait_detail, label, thread.call_address, thread.wait_site.line, 0, i};
        }
        ++places[p].count;
    }
    char* next = finding.detail;
    char* end = finding.detail + sizeof finding.detail;
    for (unsigned p = 0; p < count && next < end - 1; ++p) {
        const char* name = places[p].label ? places[p].label : wait_name(places[p].wait, places[p].detail);
        next += snprintf(next, static_cast<size_t>(end - next), "%s%u thread%s (first: %u) at %s, {site %u line %u}",
                         p ? "; " : "", places[p].count, places[p].count == 1 ? "" : "s", places[p].first, name,
                         site_id(places[p].address), places[p].line);
    }
    if (exited && next < end - 1) snprintf(next, static_cast<size_t>(end - next), "; %u exited", exited);
    if (count) finding.side.address = places[0].address, finding.side.line = places[0].line;
    if (count > 1) finding.other.address = places[1].address, finding.other.line = places[1].line;
}

}  // namespace

void sync_error(SyncError kind, Block& block, Thread* thread, const char* detail) {
    const char* name = sync_errors[static_cast<unsigned>(kind)];
    const Thread* example = thread ? thread : &block.threads[0];
    Finding finding = finding_for(Check::synccheck, name, example, example->call_address);
    finding.side.line = example->wait_site.line;
    set_detail(finding, detail);
    if (kind == SyncError::deadlock) describe_waits(block, finding);
    const Thread* other = nullptr;
    if (kind == SyncError::barrier_sites_differ) other = block.barriers[0].first;
    if (thread && kind == SyncError::own_lane_not_in_mask) finding.number = thread->wait_mask;
    if (thread && kind == SyncError::shuffle_from_inactive_lane) finding.number = thread->warp->argument[thread->lane];
    if (thread && kind == SyncError::collectives_differ) {
        const Warp& warp = *thread->warp;
        for (unsigned rest = thread->wait_mask & warp.at_collective; rest && !other; rest &= rest - 1) {
            unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
            if (warp.tag[lane] != warp.tag[thread->lane]) other = &warp.threads[lane];
        }
    }
    if (other) {
        Finding there = finding_for(Check::synccheck, name, other, other->call_address);
        finding.other = there.side;
        finding.other.line = other->wait_site.line;
        snprintf(finding.detail, sizeof finding.detail, "%s and %s",
                 has_label(thread->wait) ? thread->wait_label : wait_name(thread->wait, thread->wait_detail),
                 has_label(other->wait) ? other->wait_label : wait_name(other->wait, other->wait_detail));
    }
    add_finding(finding);
}

namespace {

// Whether the address is that of an instruction which a signal interrupted.
bool is_exact(const Fault& fault) {
    switch (fault.kind) {
        case FaultKind::illegal_address:
        case FaultKind::misaligned_address:
        case FaultKind::stack_overflow:
        case FaultKind::infinite_loop:
        case FaultKind::division_by_zero:
        case FaultKind::illegal_instruction:
            return fault.address && !(fault.thread && fault.address == fault.thread->call_address);
        default:
            return false;
    }
}

bool same_library(const void* a, const void* b) {
    Dl_info of_a, of_b;
    return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

// Where the stack ended exactly is chance: within a check, or in code that belongs to no line. What is nearest to the
// end of the stack tells more: the last access, or else the last call in the kernel's library.
const void* last_place_on_stack(const Fault& fault) {
    auto* word = reinterpret_cast<const void* const*>(fault.thread->fiber->low);
    auto* end = reinterpret_cast<const void* const*>(fault.thread->fiber->top);
    const void* call = nullptr;
    for (unsigned looked = 0; word < end && looked < 4096; ++word, ++looked) {
        if (!*word) continue;
        if (is_site(*word)) return *word;
        if (!call && same_library(*word, fault.address)) call = *word;
    }
    return call;
}

}  // namespace

void fault(Launch& launch, const Fault& fault) {
    const auto [name, check] = faults[static_cast<unsigned>(fault.kind)];
    // An index out of bounds of a local array may have led here: then it is what to report.
    ThreadState* state = fault.thread ? state_of(*fault.thread) : nullptr;
    if (state && state->pending && state->extras && state->extras->has_index) {
        report_index(*state);
        state->pending = false;
        return;
    }
    const void* address = fault.address;
    // A return address points behind its call, that of a faulting instruction at it; readers expect the former.
    if (is_exact(fault)) address = static_cast<const char*>(address) + 1;
    if (fault.kind == FaultKind::stack_overflow && fault.thread) {
        if (const void* place = last_place_on_stack(fault)) address = place;
    }
    Finding finding = finding_for(check, name, fault.thread, address);
    if (fault.thread) finding.side.fallback = fault.thread->call_address;
    finding.data = reinterpret_cast<uint64_t>(fault.data);
    finding.launch = launch.id;
    if (fault.kind == FaultKind::illegal_address && finding.data < 65536) finding.kind = "null_pointer";
    set_detail(finding, fault.detail);
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
    Finding finding = finding_for(Check::memcheck, again ? "double_free" : "bad_free", current_thread, address);
    finding.data = data;
    add_finding(finding);
}

void waits_for_nothing(const char* call, const void* address) {
    Finding finding = finding_for(Check::synccheck, "event_not_recorded", nullptr, address);
    set_detail(finding, call);
    add_finding(finding);
}

void not_its_own(const char* kind, const void* data, size_t bytes, bool write, const void* code) {
    Finding finding = finding_for(Check::memcheck, kind, current_thread, code);
    finding.side.access = static_cast<uint8_t>(write ? Access::write : Access::read);
    finding.bytes = static_cast<uint32_t>(bytes);
    finding.data = reinterpret_cast<uint64_t>(data);
    add_finding(finding);
}

void default_stream_used(const char* what, const void* address) {
    Finding finding = finding_for(Check::synccheck, "default_stream", nullptr, address);
    set_detail(finding, what);
    add_finding(finding);
}

void refused(const Launch*, const char* call, int cuda_error, const char* why, const void* address) {
    Finding finding = {};
    finding.check = Check::fault;
    finding.kind = "refused";
    finding.side.address = address;
    finding.count = 1;
    finding.kernel = ~0u;
    finding.number = static_cast<uint64_t>(cuda_error);
    snprintf(finding.detail, sizeof finding.detail, "%s: %s", call, why ? why : "");
    add_finding(finding);
    note_failed_launch();
}

}  // namespace sim::events
