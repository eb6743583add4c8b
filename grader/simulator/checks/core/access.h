// The checks of one memory access. The common case is inline; every other case is a call.
#pragma once

#include "checks/counting/requests.h"
#include "checks/synchronization/parallel_blocks.h"
#include "checks/core/state.h"
#include "runtime/fiber.h"
#include "submission_sandbox/sandbox.h"
#include "sim/local_arrays.h"

#define SIM_ALWAYS_INLINE inline __attribute__((always_inline))
#define SIM_INLINED __attribute__((always_inline))
#define SIM_NOINLINE __attribute__((noinline))
#define SIM_LIKELY(x) __builtin_expect(!!(x), true)
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), false)

namespace sim::checks {

// Returns whether the address is on the thread's own stack: other threads do not access local variables.
SIM_ALWAYS_INLINE bool is_local(const ThreadState& thread, uintptr_t address) {
    const Fiber& fiber = *thread.thread->fiber;
    return address - reinterpret_cast<uintptr_t>(fiber.low) < static_cast<size_t>(fiber.top - fiber.low);
}

// --- lookup.cpp ---
// Returns whether the address is in a read-only segment, where compilers put constant tables. Writable segments belong
// to the host, the simulator, or a __device__ variable that the access missed.
bool is_table(ThreadState& thread, uintptr_t address);
// Prepares the site for an access that it does not expect: the address is elsewhere, another thread is at the site, or
// its log is full. Returns null when nothing is left to do: the address is invalid, or local.
AccessSite* prepare(ThreadState& thread, AccessSite* site, uintptr_t address, Access access, unsigned size_log2);
// Does the same as prepare() for an access that no hook of its size reports (an atomic operation, an asynchronous
// copy). Also logs the access.
AccessSite* prepare_and_log(ThreadState& thread, uintptr_t address, Access access, unsigned size_log2,
                            const void* code);

// Makes the worker's sites look the region up again, because its shadow cells are replaced or freed.
void forget_sites(WorkerState& worker, const Region& region);

// --- wgmma.cpp ---
void local_access(ThreadState& thread, uintptr_t address, size_t bytes, Access access, const void* code);

// --- local_arrays.cpp ---
// The place of a finding about a local variable of unknown name and size.
extern const Region unknown_local;
// Called for an access to the stack that touches a red-zone word. Reports it if it is in the red zone of a local array.
void red_access(ThreadState& thread, uintptr_t address, size_t bytes, Access access, const void* code);
// Returns whether the access may touch a red zone. Words are 4 bytes, but an array need not end at a multiple of 4, so
// the words around a smaller access count as well.
SIM_ALWAYS_INLINE bool may_be_red(uintptr_t address, size_t bytes) {
    auto word = reinterpret_cast<const uint32_t*>(address & ~uintptr_t(3));
    return word[0] == red_word || (bytes != 4 && word[bytes < 4 ? 1 : bytes / 4 - 1] == red_word);
}

// --- pending.cpp ---
// Called before an access by a thread with a pending write or a pending out-of-bounds index.
void before_access(ThreadState& thread, uintptr_t address, unsigned size_log2, Access access, const void* code);
// Records a possible race with the cell's last write. It is no race if the write stores the value that is already
// there, which is known only after the write.
void note_write(ThreadState& thread, const AccessSite& site, uintptr_t address, size_t bytes, Epoch other,
                uint16_t other_site, Access other_access);
// Sets whether unordered writes of the same value are reported as a race; by default they are not.
void report_same_value(bool reports);
void forget_writes(ThreadExtras& extras);
// Decides the thread's pending questions: did a racing write change the value, was an index out of bounds a finding?
// `address` and `code` describe the thread's next access; they are 0 and null if it does something else.
void settle(ThreadState& thread, uintptr_t address, const void* code);
// Reports the pending out-of-bounds index, whether or not the access itself was reported.
void report_index(ThreadState& thread);

// --- races.cpp: called if comparing two epochs does not decide whether two accesses are ordered ---
void read_conflict(ThreadState& thread, ShadowCell& cell, const AccessSite& site);
void add_reader(ThreadState& thread, ShadowCell& cell, const AccessSite& site);
void write_conflict(ThreadState& thread, ShadowCell& cell, const AccessSite& site, uintptr_t address);
// How an atomic or volatile operation accesses memory.
struct AtomicAccess {
    bool reads = true;  // the memory must have been written before
    bool stores = true;
    bool block_scope = false;
};
void atomic_cell(ThreadState& thread, ShadowCell& cell, const AccessSite& site, AtomicAccess access);
// Returns the epoch of the last atomic store since the cell's last ordinary write, or `never` if there was none.
Epoch last_atomic_store(const ShadowCell& cell);

// Returns whether the set `reads` already includes the thread. A set stores only its extent: lanes of the thread's warp
// since the warp last synchronized, warps of its block since the last block barrier, or several blocks. A thread within
// the extent counts as included.
SIM_ALWAYS_INLINE bool has_reader(const ThreadState& thread, const AccessSite& site, Epoch reads) {
    if (reads.reach() != thread.covered) return reads.without_lane() == thread.warp_covered;
    if (reads.same_block(thread.epoch) && !(reads < thread.floors[shared_window].end())) return true;
    return reads.sharing() == many_blocks && site.window != shared_window;
}

SIM_ALWAYS_INLINE void read_cell(ThreadState& thread, ShadowCell& cell, const AccessSite& site) {
    const EpochRange& floor = thread.floors[site.window];
    // The usual case: a thread wrote the cell before the last barrier.
    if (SIM_UNLIKELY(!floor.contains(cell.write))) read_conflict(thread, cell, site);
    Epoch reads = cell.reads;
    if (reads < floor.end()) {
        cell.reads = thread.epoch;
        cell.read_site = site.id;
    } else if (reads != thread.epoch && !has_reader(thread, site, reads)) {
        add_reader(thread, cell, site);
    }
}

SIM_ALWAYS_INLINE void write_cell(ThreadState& thread, ShadowCell& cell, const AccessSite& site, uintptr_t address) {
    Epoch floor = thread.floors[site.window].end();
    bool write_ordered = cell.write < floor || cell.write == thread.epoch;
    bool reads_ordered = cell.reads < floor || cell.reads == thread.epoch;
    if (SIM_UNLIKELY(!(write_ordered & reads_ordered))) write_conflict(thread, cell, site, address);
    cell.write = thread.epoch;
    cell.write_site = site.id;
}

// Calls visit(cell) for the cells of an access to 1 << size_log2 bytes.
template <typename F>
SIM_ALWAYS_INLINE void each_cell(const AccessSite& site, uintptr_t address, unsigned size_log2, F visit) {
    ShadowCell* cell = site.cells + ((address - site.base) >> site.shift);
    unsigned count = size_log2 > site.shift ? 1u << (size_log2 - site.shift) : 1;
    for (unsigned i = 0; i < count; ++i) visit(cell[i]);
}

// Splits the bytes into the largest aligned pieces of at most 1 << `most` bytes. Calls visit(address, log2 of the size)
// for each.
template <typename F>
void each_piece(const void* data, size_t bytes, unsigned most, F visit) {
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    while (bytes > 0) {
        unsigned size_log2 = most;
        while ((size_t(1) << size_log2) > bytes || (address & ((uintptr_t(1) << size_log2) - 1))) --size_log2;
        visit(address, size_log2);
        address += size_t(1) << size_log2;
        bytes -= size_t(1) << size_log2;
    }
}

template <bool Write>
SIM_ALWAYS_INLINE void access_cells(ThreadState& thread, AccessSite& site, uintptr_t address, unsigned size_log2) {
    each_cell(site, address, size_log2, [&](ShadowCell& cell) SIM_INLINED {
        if (Write)
            write_cell(thread, cell, site, address);
        else
            read_cell(thread, cell, site);
    });
}

// Does the same as access_cells() for shadow cells that other workers use at the same time.
template <bool Write>
SIM_ALWAYS_INLINE void access_cells_guarded(ThreadState& thread, AccessSite& site, uintptr_t address,
                                            unsigned size_log2) {
    if (Write)
        write_cells_of_several(thread, site, address, size_log2);
    else
        read_cells_of_several(thread, site, address, size_log2);
}

// An ordinary read or write by kernel code. `code` is the hook's return address.
template <unsigned SizeLog2, bool Write>
SIM_ALWAYS_INLINE void on_access(ThreadState& thread, uintptr_t address, const void* code) {
    if (SIM_UNLIKELY(thread.pending))
        before_access(thread, address, SizeLog2, Write ? Access::write : Access::read, code);
    thread.hooked[Write] = {address, size_t(1) << SizeLog2};
    AccessSite* site = thread.worker->sites.find(code);
    constexpr uintptr_t alignment = (uintptr_t(1) << SizeLog2) - 1;
    if (SIM_UNLIKELY((address - site->base >= site->limit) | ((address & alignment) != 0) | (site->owner != &thread) |
                     (site->next == site->end))) {
        if (is_local(thread, address)) {
            if (Write && sandbox::confined && !sandbox::in_caller(address, size_t(1) << SizeLog2, SIM_FRAME))
                sandbox::check_stack(reinterpret_cast<void*>(address), size_t(1) << SizeLog2, code, SIM_FRAME);
            if (SIM_UNLIKELY(may_be_red(address, size_t(1) << SizeLog2)))
                red_access(thread, address, size_t(1) << SizeLog2, Write ? Access::write : Access::read, code);
            if (SIM_UNLIKELY(thread.watches))
                local_access(thread, address, size_t(1) << SizeLog2, Write ? Access::write : Access::read, code);
            return;
        }
        site = prepare(thread, site, address, Write ? Access::write : Access::read, SizeLog2);
        if (!site) return;
    }
    *site->next++ = static_cast<uint32_t>((address - site->origin) >> SizeLog2);
    if (!site->cells) return;
    if (SIM_UNLIKELY(site->guarded))
        access_cells_guarded<Write>(thread, *site, address, SizeLog2);
    else
        access_cells<Write>(thread, *site, address, SizeLog2);
}

}  // namespace sim::checks
