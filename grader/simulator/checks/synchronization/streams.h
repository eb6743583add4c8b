// The order that streams, events and synchronization give to launches, copies and the host's accesses.
//
// races.h decides the order within a launch. An access is ordered after the earlier launches and copies that its
// operation's clock (runtime/clock.h) covers. In a program with one stream, that is everything earlier. With several
// streams, shadow cells also record copies and fills, each as a launch of one thread.
#pragma once

#include "checks/report/findings.h"
#include "checks/core/state.h"
#include "runtime/clock.h"

namespace sim::checks {

// Returns the operation that runs now; null outside of all operations.
const Work* current_work();

// Returns whether the running operation is ordered after the launch or copy with this serial.
bool looked_up_came_before(uint32_t serial);
inline bool came_before(uint32_t serial) {
    if (serial < the_launch.open_serial) return true;
    return serial < the_launch.first_serial && looked_up_came_before(serial);
}
// For a thread of a programmatic launch: the previous launch may still run until the thread executes
// griddepcontrol.wait.
inline bool overlaps(const ThreadState& thread, uint32_t serial) {
    return serial - the_launch.overlap_first < the_launch.overlap_serials && !thread.awaited;
}
inline bool came_before(const ThreadState& thread, uint32_t serial) {
    return came_before(serial) && !overlaps(thread, serial);
}
// Returns whether the serial belongs to a launch before the running one.
inline bool of_earlier_launch(uint32_t serial) {
    return serial < the_launch.first_serial && past_launch(serial) != past_launch(the_launch.first_serial);
}

// Gives the launch its serials, and finds earlier launches that may overlap with it. Returns false if the launch has
// more blocks than there are serials.
bool begin_ordered_launch(const Launch& launch);
void end_ordered_launch();
void forget_streams();

// --- accesses by no thread of a grid: a copy, a fill, the host ---
void work_reads(uintptr_t address, size_t bytes);
// Called for a copy to the host: reports bytes that were never written.
void work_copies_out(uintptr_t address, size_t bytes);
void work_writes(uintptr_t address, size_t bytes);
void work_allocates(Region& region);
void work_frees(Region& region, const void* address);
// Called when a copy writes to host memory that is not pinned.
void work_writes_host(uintptr_t address, size_t bytes);
// Called when host code accesses memory that a pending copy may use.
void host_touches_own(uintptr_t address, size_t bytes, bool write, const void* code);
// Called when host code accesses memory that kernels may access as well.
void host_touches(Region& region, uintptr_t address, size_t bytes, bool write, const void* code);

// --- sides of findings ---
void name_work(Side& side, uint32_t serial);
// Reports an access to memory whose cudaMallocAsync is not ordered before it.
void check_allocated(const ThreadState& thread, const Region& region, Access access, unsigned bytes, uintptr_t address,
                     const void* code);

}  // namespace sim::checks
