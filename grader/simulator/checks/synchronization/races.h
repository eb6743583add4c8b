// racecheck: which accesses are ordered, and what synchronization orders.
#pragma once

#include "checks/core/state.h"
#include "sim/scope.h"

namespace sim::checks {

// Whether one thread's access happened before what `thread` does now. Not for shared memory of other blocks.
// `variable`: when the access was an atomic operation, what it was on.
bool ordered(const ThreadState& thread, Epoch access, const void* variable = nullptr);
// Whether all that the block did before its time `time` happened before what `thread` does now, thanks to barriers.
bool ordered_by_barrier(const ThreadState& thread, uint32_t serial, uint32_t time);
// Whether the serial belongs to a block of this one's cluster, now or before a barrier of the grid.
bool is_own(const BlockState& block, uint32_t serial);

// A race between the thread's access and an earlier one.
void report_race(const ThreadState& thread, const void* code, Access access, uint32_t bytes, uintptr_t address,
                 const Region* region, Epoch other, uint16_t other_site, Access other_access);

// An ordinary write that asynchronous reads of the thread need not see, for want of a fence.proxy.async.
void report_missing_proxy_fence(const ThreadState& thread, const AccessSite& site, const ShadowCell& cell,
                                uintptr_t address);

// --- what orders ---
void block_joined(BlockState& block);                      // all live threads met
void some_joined(BlockState& block, unsigned barrier);     // those that wait there
void arrived(ThreadState& thread, unsigned barrier);       // bar.arrive: releases, does not acquire
void warp_joined(WarpState& warp, unsigned participants);  // __syncwarp
void grid_joined();
// From now on its threads have times of their own, and sets of readers are kept member by member.
void become_exact(BlockState& block);
void fenced(ThreadState& thread, Scope scope);
void acquire(ThreadState& thread, const void* variable);
void release(ThreadState& thread, const void* variable);
// The log of the releases through this variable, or null.
const SyncLog* log_of(const void* variable);
// What a thread publishes of what it and others did up to that time of its own.
Release release_of(const ThreadState& thread, uint32_t time);
// The log of the releases through this variable. The caller holds the launch's lock, where several workers run.
SyncLog& new_log(const void* variable);
// What the thread read from atomics and volatile variables is in force from here on.
void add_acquired(VectorClockBuilder& builder, ThreadState& thread);
void forget_order();  // at the end of a launch

}  // namespace sim::checks
