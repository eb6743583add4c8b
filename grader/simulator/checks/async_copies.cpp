// Asynchronous copies: who may touch their destination, and when they have arrived.
#include "checks/access.h"
#include "runtime/events.h"

namespace sim::events {

using namespace sim::checks;

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
    Epoch epoch = state.epoch;
    each_piece(shared, bytes, [&](uintptr_t to, unsigned size_log2) {
        AccessSite* site = prepare_and_log(state, to, Access::async_write, size_log2, address);
        if (!site || !site->cells) return;
        ShadowCell* cell = site->cells + ((to - site->base) >> site->shift);
        unsigned count = size_log2 > site->shift ? 1u << (size_log2 - site->shift) : 1;
        for (unsigned i = 0; i < count; ++i) {
            write_cell(state, cell[i], *site, to);
            cell[i].write = epoch.with_time(Epoch::time_pending);
        }
    });
    ThreadExtras& extras = extras_of(state);
    if (!extras.copies) {
        extras.copies = static_cast<Growable<AsyncCopy>*>(calloc(1, sizeof *extras.copies));
        if (!extras.copies) abort();
    }
    extras.copies->push({reinterpret_cast<uintptr_t>(shared), static_cast<uint32_t>(bytes), extras.copy_group});
}

void async_commit(Thread& thread) { ++extras_of(*state_of(thread)).copy_group; }

void async_wait(Thread& thread, unsigned groups_that_may_be_pending) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
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
            ShadowCell& cell = region->cells[i];
            if (cell.write == state.epoch.with_time(Epoch::time_pending)) cell.write = state.epoch;
        }
    }
    size_t kept = copies.size() - done;
    for (size_t i = 0; i < kept; ++i) copies[i] = copies[done + i];
    copies.truncate(kept);
}

}  // namespace sim::events
