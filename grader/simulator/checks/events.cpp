// The events that the runtime reports, handed to the checks that need them.
#include "runtime/events.h"

#include <dlfcn.h>
#include <stdio.h>

#include "checks/access.h"
#include "checks/counting.h"
#include "checks/findings.h"
#include "checks/hooks.h"
#include "checks/races.h"
#include "checks/report.h"
#include "runtime/fiber.h"

namespace sim::events {

using namespace sim::checks;

namespace {

SpinLock atomic_lock;  // of one atomic operation and what the checks learn from it, when several workers run

// Decides what a thread left open, now that it does something else than access memory.
inline void settle_if_pending(ThreadState& thread) {
    if (SIM_UNLIKELY(thread.pending)) settle(thread, 0, nullptr);
}

void settle_lanes(WarpState& warp, unsigned lanes) {
    if (!warp.block->extras) return;
    ThreadState* first = warp.block->threads + warp.warp->index * lanes_per_warp;
    for (; lanes; lanes &= lanes - 1) settle_if_pending(first[__builtin_ctz(lanes)]);
}

// Without a state: errors are reported even when a launch runs without checks.
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

void set_detail(Finding& finding, const char* text) {
    if (text) strncpy(finding.detail, text, sizeof finding.detail - 1);
}

// Some threads of the block will never come: they have exited.
void check_exits(BlockState& block, const unsigned* participants) {
    if (block.exit_reported) return;
    unsigned present = 0;
    const Thread* first = nullptr;
    for (unsigned w = 0; w < block.block->warp_count; ++w) {
        present += static_cast<unsigned>(__builtin_popcount(participants[w]));
        if (!first && participants[w]) first = &block.block->warps[w].threads[__builtin_ctz(participants[w])];
    }
    if (present == block.block->thread_count || !first) return;
    block.exit_reported = true;
    Finding finding = finding_for(Check::synccheck, "barrier_after_exit", first, first->call_address);
    finding.side.line = first->wait_site.line;
    finding.number = block.block->thread_count - present;
    finding.bytes = block.block->thread_count;
    add_finding(finding);
}

void count_barrier(const Block& block, const unsigned* participants) {
    Locked locked(the_launch.lock);
    ++the_launch.barriers;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        if (!participants[w]) continue;
        const Thread& thread = block.warps[w].threads[__builtin_ctz(participants[w])];
        ++the_launch.barriers_at.at(reinterpret_cast<uint64_t>(thread.call_address));
        return;
    }
}

}  // namespace

// --- the life of a grid ---

void launch_begin(Launch& launch) {
    the_launch.launch = &launch;
    the_launch.kernel = kernel_index(launch.kernel_name);
    the_launch.concurrent = launch.workers > 1;
    the_launch.exact = false;
    the_launch.arrays.clear();
    the_launch.has_dynamic_array = false;
    the_launch.barriers = 0;
    the_launch.barriers_at.clear();
    the_launch.cell_lock.reset();
    the_launch.lock.reset();
    atomic_lock.reset();
    if (!begin_serials(launch)) launch.checks_enabled = false;
    // Cells cannot be split while several workers use them.
    if (the_launch.concurrent) {
        each_allocation(
            [](Region& region, void*) {
                if (!region.element_bytes) refine(region, 0);
            },
            nullptr);
    }
}

void launch_end(Launch& launch) {
    if (launch.error) note_failed_launch();
    // What is left of a launch that was ended half way.
    each_worker([](WorkerState& worker) {
        drop_logs(worker);
        while (!worker.blocks.empty()) end_block(*worker.blocks.back());
    });
    KernelRecord& record = kernel(the_launch.kernel);
    ++record.launches;
    uint32_t grid[3] = {launch.grid.x, launch.grid.y, launch.grid.z};
    uint32_t block[3] = {launch.block.x, launch.block.y, launch.block.z};
    memcpy(record.grid, grid, sizeof grid);
    memcpy(record.block, block, sizeof block);
    record.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    record.static_shared_bytes = launch.static_shared_bytes;
    record.blocks += uint64_t(grid[0]) * grid[1] * grid[2];
    record.threads += uint64_t(grid[0]) * grid[1] * grid[2] * block[0] * block[1] * block[2];
    record.barriers += the_launch.barriers;
    collect(record);
    the_launch.barriers_at.each([&record](uint64_t address, uint64_t count) {
        count_barriers(record, site_id(reinterpret_cast<const void*>(address)), count);
    });
    SectorTotals sectors = end_sectors();
    record.touched_sectors[0] += sectors.read;
    record.touched_sectors[1] += sectors.written;
    record.touched_sectors[2] += sectors.either;
    forget_order();
    each_worker([](WorkerState& worker) {
        worker.pool.clear();
        worker.known_barriers.clear();
    });
    end_serials();
    the_launch.launch = nullptr;
}

void block_begin(Block& block) {
    begin_block(block);
    // Even when it is empty: a kernel that uses it without asking for any must hear of it.
    if (!the_launch.has_dynamic_array) {
        the_launch.has_dynamic_array = true;
        size_t offset = static_cast<size_t>(block.dynamic_shared - block.shared);
        shared_array(*block.launch, nullptr, offset, block.launch->dynamic_shared_bytes, "");
    }
}

void block_end(Block& block) {
    BlockState& state = *state_of(block);
    flush_block(state);
    end_block(state);
}

void thread_begin(Thread&) {}

void thread_exit(Thread& thread) {
    if (ThreadState* state = state_of(thread)) settle_if_pending(*state);
}

// --- synchronisation ---

void barrier(Block& block, unsigned barrier, const unsigned* participants) {
    BlockState& state = *state_of(block);
    for (unsigned w = 0; w < block.warp_count; ++w) settle_lanes(state.warps[w], participants[w]);
    unsigned waiting = 0;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        unsigned lanes = barrier ? participants[w] & block.named[barrier].waiting[w] : participants[w];
        waiting += static_cast<unsigned>(__builtin_popcount(lanes));
    }
    count_barrier(block, participants);
    if (waiting == block.live) {
        flush_block(state);
        if (!barrier) check_exits(state, participants);
    } else {
        for (unsigned w = 0; w < block.warp_count; ++w)
            if (participants[w] == block.warps[w].existing) flush_warp(state.warps[w]);
    }
    if (waiting == block.live && !state.arrivals[barrier])
        block_joined(state);
    else
        some_joined(state, barrier, participants);
}

void barrier_arrive(Thread& thread, unsigned barrier) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    arrived(state, barrier);
}

void syncwarp(Warp& warp, unsigned, unsigned participants) {
    WarpState& state = *state_of(warp);
    settle_lanes(state, participants);
    if (participants == (warp.existing & ~warp.exited)) flush_warp(state);
    warp_joined(state, participants);
}

void warp_collective(Warp& warp, Wait, unsigned, unsigned participants) {
    WarpState& state = *state_of(warp);
    settle_lanes(state, participants);
    if (participants == (warp.existing & ~warp.exited)) flush_warp(state);
}

void grid_sync(Launch&) {
    each_worker([](WorkerState& worker) {
        for (BlockState* block : worker.blocks) {
            for (unsigned w = 0; w < block->block->warp_count; ++w)
                settle_lanes(block->warps[w], ~block->block->warps[w].exited & block->block->warps[w].existing);
            flush_block(*block);
        }
    });
    grid_joined();
}

void atomic(Thread& thread, const void* data, size_t bytes, AtomicOp op, Scope scope, const void* address) {
    ThreadState& state = *state_of(thread);
    unsigned size_log2 = static_cast<unsigned>(__builtin_ctzll(bytes));
    bool reads = op != AtomicOp::store && op != AtomicOp::exchange;
    bool shared = in_shared(*state.block, reinterpret_cast<uintptr_t>(data));
    unordered_access(state, reinterpret_cast<uintptr_t>(data), Access::atomic, size_log2, address, reads,
                     scope == Scope::block && !shared);
    if (the_launch.concurrent) atomic_lock.lock();
    if (op != AtomicOp::store) acquire(state, data);
}

void atomic_done(Thread& thread, const void* data, size_t, AtomicOp op, bool changed) {
    ThreadState& state = *state_of(thread);
    // Any operation that stores goes on with what earlier ones released; only a failed exchange stores nothing.
    bool stores = op != AtomicOp::load && (changed || op != AtomicOp::compare_and_swap);
    if (stores) checks::release(state, data);
    if (the_launch.concurrent) atomic_lock.unlock();
}

void fence(Thread& thread, Scope scope) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    fenced(state, scope);
}

// --- asynchronous copies ---

namespace {

// Calls visit(address, log2 of the size) for the largest aligned pieces.
template <typename F>
void each_piece(const void* data, size_t bytes, F visit) {
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    while (bytes > 0) {
        unsigned size_log2 = 4;
        while ((size_t(1) << size_log2) > bytes || (address & ((uintptr_t(1) << size_log2) - 1))) --size_log2;
        visit(address, size_log2);
        address += size_t(1) << size_log2;
        bytes -= size_t(1) << size_log2;
    }
}

}  // namespace

void async_copy(Thread& thread, void* shared, const void* global, size_t bytes, size_t zero_fill, const void* address) {
    ThreadState& state = *state_of(thread);
    each_piece(global, bytes - zero_fill, [&](uintptr_t from, unsigned size_log2) {
        AccessSite* site = prepare_and_log(state, from, Access::async_read, size_log2, address);
        if (!site || !site->cells) return;
        if (site->guarded) the_launch.cell_lock.lock();
        access_cells<false>(state, *site, from, size_log2);
        if (site->guarded) the_launch.cell_lock.unlock();
    });
    // The copy arrives some time before the wait: until then nobody may touch its destination.
    Stamp stamp = state.stamp;
    each_piece(shared, bytes, [&](uintptr_t to, unsigned size_log2) {
        AccessSite* site = prepare_and_log(state, to, Access::async_write, size_log2, address);
        if (!site || !site->cells) return;
        Cell* cell = site->cells + ((to - site->base) >> site->shift);
        unsigned count = size_log2 > site->shift ? 1u << (size_log2 - site->shift) : 1;
        for (unsigned i = 0; i < count; ++i) {
            write_cell(state, cell[i], *site, to);
            cell[i].write = with_time(stamp, time_pending);
        }
    });
    ThreadExtras& extras = extras_of(state);
    if (!extras.copies) {
        extras.copies = static_cast<Growable<AsyncCopy>*>(calloc(1, sizeof *extras.copies));
        if (!extras.copies) abort();
    }
    extras.copies->push(
        {reinterpret_cast<uintptr_t>(shared), static_cast<uint32_t>(bytes), extras.copy_group, address});
}

void async_commit(Thread& thread) { ++extras_of(*state_of(thread)).copy_group; }

void async_wait(Thread& thread, unsigned groups_that_may_be_pending) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    if (!state.extras || !state.extras->copies) return;
    Growable<AsyncCopy>& copies = *state.extras->copies;
    size_t done = 0;
    for (; done < copies.size(); ++done) {
        const AsyncCopy& copy = copies[done];
        if (copy.group + groups_that_may_be_pending >= state.extras->copy_group) break;
        Region* region = find_shared(*state.block, copy.shared);
        if (!region || !region->cells) continue;
        size_t first = (copy.shared - region->base) >> region->shift;
        size_t last = (copy.shared - region->base + copy.bytes - 1) >> region->shift;
        for (size_t i = first; i <= last && i < region->cell_count(); ++i) {
            Cell& cell = region->cells[i];
            if (cell.write == with_time(state.stamp, time_pending)) cell.write = state.stamp;
        }
    }
    size_t kept = copies.size() - done;
    for (size_t i = 0; i < kept; ++i) copies[i] = copies[done + i];
    copies.truncate(kept);
}

// --- errors ---

namespace {

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
            const char* label = thread.wait == Wait::exchange ? thread.wait_label : nullptr;
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
    const char* name = "";
    switch (kind) {
        case SyncError::deadlock:
            name = "deadlock";
            break;
        case SyncError::barrier_sites_differ:
            name = "barrier_sites_differ";
            break;
        case SyncError::own_lane_not_in_mask:
            name = "own_lane_not_in_mask";
            break;
        case SyncError::collectives_differ:
            name = "collectives_differ";
            break;
        case SyncError::shuffle_from_inactive_lane:
            name = "shuffle_from_inactive_lane";
            break;
        case SyncError::barrier_threads_invalid:
            name = "barrier_threads_invalid";
            break;
        case SyncError::grid_sync_not_cooperative:
            name = "grid_sync_not_cooperative";
            break;
    }
    const Thread* example = thread ? thread : &block.threads[0];
    Finding finding = finding_for(Check::synccheck, name, example, example->call_address);
    finding.side.line = example->wait_site.line;
    set_detail(finding, detail);
    if (kind == SyncError::deadlock) describe_waits(block, finding);
    const Thread* other = nullptr;
    if (kind == SyncError::barrier_sites_differ) other = block.barrier_first;
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
                 thread->wait == Wait::exchange ? thread->wait_label : wait_name(thread->wait, thread->wait_detail),
                 other->wait == Wait::exchange ? other->wait_label : wait_name(other->wait, other->wait_detail));
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
    Check check = Check::fault;
    const char* name = "";
    switch (fault.kind) {
        case FaultKind::illegal_address:
            name = "illegal_address";
            check = Check::memcheck;
            break;
        case FaultKind::misaligned_address:
            name = "misaligned";
            check = Check::memcheck;
            break;
        case FaultKind::stack_overflow:
            name = "stack_overflow";
            check = Check::memcheck;
            break;
        case FaultKind::infinite_loop:
            name = "infinite_loop";
            check = Check::synccheck;
            break;
        case FaultKind::division_by_zero:
            name = "division_by_zero";
            break;
        case FaultKind::illegal_instruction:
            name = "illegal_instruction";
            break;
        case FaultKind::out_of_memory:
            name = "out_of_memory";
            break;
        case FaultKind::trap:
            name = "trap";
            break;
        case FaultKind::assertion:
            name = "assertion";
            break;
        case FaultKind::shared_memory_exceeded:
            name = "shared_memory_exceeded";
            break;
        case FaultKind::device_exception:
            name = "device_exception";
            break;
    }
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

void refused(const Launch*, const char* call, int cuda_error, const char* why) {
    Finding finding = {};
    finding.check = Check::fault;
    finding.kind = "refused";
    finding.count = 1;
    finding.kernel = ~0u;
    finding.number = static_cast<uint64_t>(cuda_error);
    snprintf(finding.detail, sizeof finding.detail, "%s: %s", call, why ? why : "");
    add_finding(finding);
    note_failed_launch();
}

// --- memory ---

void allocation(const Allocation& allocation) {
    ArenaRange arena = arena_range();
    host_view = {reinterpret_cast<uintptr_t>(arena.base), arena.bytes};
    count_allocation(add_allocation(allocation));
}

void release(void* base, size_t, const void* address) {
    if (Region* region = release_allocation(reinterpret_cast<uintptr_t>(base), address)) count_release(*region);
}

void host_write(const void* data, size_t bytes) { mark_written(reinterpret_cast<uintptr_t>(data), bytes); }
void host_read(const void*, size_t) {}
void expect_output(void* base) { mark_expected(reinterpret_cast<uintptr_t>(base)); }
void read_only(void* base) { mark_read_only(reinterpret_cast<uintptr_t>(base)); }

void shared_array(Launch&, const void* slot, size_t offset, size_t bytes, const char* name) {
    Locked locked(the_launch.lock);
    for (const SharedArray& known : the_launch.arrays)
        if (known.slot == slot) return;
    SharedArray array = {};
    array.slot = slot;
    array.offset = offset;
    array.bytes = bytes;
    // The same for each launch, so that findings are counted together.
    array.id = static_cast<uint32_t>(mix(reinterpret_cast<uint64_t>(slot) + the_launch.kernel)) | 1u << 31;
    strncpy(array.name, name ? name : "", sizeof array.name - 1);
    the_launch.arrays.push(array);
}

// --- the C interface ---

void reset() {
    forget_findings();
    forget_kernels();
    forget_scratch();
    forget_regions();
    forget_names();
    forget_report();
    each_worker([](WorkerState& worker) { worker.sites.clear(); });
    forget_site_ids();
    traces.clear();
    host_view = {};
}

int configure(const char* key, const char* value) {
    char* end;
    unsigned long number = strtoul(value, &end, 10);
    if (end == value || *end) return -1;
    if (!strcmp(key, "max_findings")) {
        set_finding_limit(number);
    } else if (!strcmp(key, "trace")) {
        trace_limit = number < 255 ? static_cast<unsigned>(number) : 255;
    } else {
        return -1;
    }
    return 0;
}

const char* report() { return write_report(); }

int writer(const void* data, unsigned writer[6]) {
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    Region* region = find_region(address);
    if (!region || !region->cells) return 0;
    const Cell& cell = region->cells[(address - region->base) >> region->shift];
    Stamp stamp = cell.write;
    if (is_atomic(cell.reads) && serial_of(cell.reads) >= serial_of(stamp)) stamp = cell.reads;
    if (serial_of(stamp) == 0) return 0;
    return name_thread(serial_of(stamp), thread_of(stamp), writer, writer + 3);
}

}  // namespace sim::events
