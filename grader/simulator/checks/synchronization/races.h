// racecheck: which accesses are ordered, and what synchronization orders.
#pragma once

#include "checks/core/state.h"
#include "sim/scope.h"

namespace sim::checks {

// Returns whether one thread's access happened before what `thread` does now. Do not use it for the shared memory of
// other blocks. `variable`: the address if the access was an atomic operation, else null.
bool ordered(const ThreadState& thread, Epoch access, const void* variable = nullptr);
// Returns whether `thread` is ordered, by barriers, after all accesses that the block with this serial made before its
// time `time`.
bool ordered_by_barrier(const ThreadState& thread, uint32_t serial, uint32_t time);
// Returns whether the serial is, or was before a grid barrier, that of a block in the cluster of `block`.
bool is_own(const BlockState& block, uint32_t serial);

// Returns the type of access of the cell's readers of this kind (reader_set.h). Atomic kinds stand for atomic
// operations if threads synchronize through the location, and for volatile accesses otherwise.
Access access_of(const ShadowCell& cell, unsigned kind);

// Reports a race between the thread's access and an earlier one.
void report_race(const ThreadState& thread, const void* code, Access access, uint32_t bytes, uintptr_t address,
                 const Region* region, Epoch other, uint16_t other_site, Access other_access);

// Reports an ordinary write that the thread's asynchronous reads may not see because a fence.proxy.async is missing.
void report_missing_proxy_fence(const ThreadState& thread, const AccessSite& site, const ShadowCell& cell,
                                uintptr_t address);

// --- events that order accesses ---
void block_joined(BlockState& block);                      // all live threads have synchronized
void some_joined(BlockState& block, unsigned barrier);     // the threads that wait at the barrier
void arrived(ThreadState& thread, unsigned barrier);       // bar.arrive: releases, does not acquire
void warp_joined(WarpState& warp, unsigned participants);  // __syncwarp
void grid_joined();
// Switches the block to exact mode: from now on each thread has a separate time, and reader sets list every member.
void become_exact(BlockState& block);
void fenced(ThreadState& thread, Scope scope, MemoryOrder order = MemoryOrder::acq_rel);
// Called when the thread has read the variable by an atomic or volatile operation. `in_effect`: the operation acquires.
// Otherwise the thread acquires what it read at its next fence.
void acquire(ThreadState& thread, const void* variable, Scope scope = Scope::device, bool in_effect = false);
// The thread has stored to the variable by an atomic or volatile operation of this order. `begins`: the operation did
// not read the variable, so a later reader learns nothing from earlier stores.
void release(ThreadState& thread, const void* variable, Scope scope = Scope::device,
             MemoryOrder order = MemoryOrder::relaxed, bool begins = false);
// Returns the log of the releases that a read of this variable observes now, or null.
const SyncLog* log_of(const void* variable);
// Returns what a release by the thread publishes: its accesses before `time`, and all accesses ordered before those.
Release release_of(const ThreadState& thread, uint32_t time);
// Creates the log of the releases through this variable. With several workers, the caller holds the launch's lock.
SyncLog& new_log(const void* variable);
// Adds what the thread knows, and what it read from atomic and volatile variables if a fence of this scope acquires
// that.
void add_acquired(VectorClockBuilder& builder, const ThreadState& thread, Scope scope);
// Keeps what a fence of this scope could not acquire, for a later fence of a wider scope.
void keep_acquired(ThreadState& thread, Scope scope);
void forget_order();  // call it at the end of a launch

}  // namespace sim::checks
