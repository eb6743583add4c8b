// What streams, events and synchronizations order: launches, copies, and what the host does.
//
// Within a launch, races.h decides. Of earlier launches and copies an access comes after those that the clock of its own
// (runtime/clock.h) covers. A program with one stream has nothing to ask: everything earlier came before. With several,
// shadow cells remember copies and fills, too, each as a launch of one thread.
#pragma once

#include "checks/report/findings.h"
#include "checks/core/state.h"
#include "runtime/clock.h"

namespace sim::checks {

// What runs now; null outside of all operations.
const Work* current_work();

// Whether the launch or copy with this serial, an earlier one, is known to be over to what runs now.
bool looked_up_came_before(uint32_t serial);
inline bool came_before(uint32_t serial) {
    if (serial < the_launch.open_serial) return true;
    return serial < the_launch.first_serial && looked_up_came_before(serial);
}
// The same for one of its threads: the launch before a programmatic one comes before what follows griddepcontrol.wait.
inline bool overlaps(const ThreadState& thread, uint32_t serial) {
    return serial - the_launch.overlap_first < the_launch.overlap_serials && !thread.awaited;
}
inline bool came_before(const ThreadState& thread, uint32_t serial) {
    return came_before(serial) && !overlaps(thread, serial);
}
// Whether the serial belongs to another launch than the one that runs.
inline bool of_earlier_launch(uint32_t serial) {
    return serial < the_launch.first_serial && past_launch(serial) != past_launch(the_launch.first_serial);
}

// Numbers the launch, and finds out which earlier ones may run beside it. False when it has too many blocks.
bool begin_ordered_launch(const Launch& launch);
void end_ordered_launch();
void forget_streams();

// --- accesses by no thread of a grid: a copy, a fill, the host ---
void work_reads(uintptr_t address, size_t bytes);
// To the host: what nothing has written is a finding.
void work_copies_out(uintptr_t address, size_t bytes);
void work_writes(uintptr_t address, size_t bytes);
void work_allocates(Region& region);
void work_frees(Region& region, const void* address);
// A copy writes to memory of the host that is not pinned.
void work_writes_host(uintptr_t address, size_t bytes);
// Code of the host accesses such memory, where copies may be under way.
void host_touches_own(uintptr_t address, size_t bytes, bool write, const void* code);
// Code of the host accesses memory that kernels see as well.
void host_touches(Region& region, uintptr_t address, size_t bytes, bool write, const void* code);

// --- sides of findings ---
void name_work(Side& side, uint32_t serial);
// The thread uses memory whose cudaMallocAsync does not come before.
void check_allocated(const ThreadState& thread, const Region& region, Access access, unsigned bytes, uintptr_t address,
                     const void* code);

}  // namespace sim::checks
