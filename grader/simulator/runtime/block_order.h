// Blocks of one launch on several workers, with the results of running them one after another.
//
// Blocks may run in any order if each memory location is either private to one block or read-only. What a block can
// observe of another block must happen in block order: atomic operations on global memory, fences, printf, malloc,
// launches, polling and faults. A thread calls in_block_order() before such an operation.
//
// The first cluster runs alone. If it calls in_block_order(), later clusters probably will as well, so the launch stays
// on one worker. If it does not, but a later cluster does, there are two cases:
// - Without checks, this cluster waits until all earlier clusters have ended. All later clusters wait until it ends.
// - With checks, the launch is rolled back and runs again on one worker. The checks also see plain accesses, and call
//   in_block_order() when two blocks conflict (checks/synchronization/parallel_blocks.h).
//
// If only some blocks of a launch are checked (sampling.h), the launch cannot be rolled back. Such a launch goes on as
// without checks, and a cluster with checks waits for its turn before it begins.
//
// Without checks, two cases go unnoticed. (1) Blocks communicate only through plain or volatile accesses, without an
// atomic operation or a fence. Their result is undefined on a GPU as well. (2) A block polls for a change by a later
// block. If the first cluster did not call in_block_order(), the later blocks run in any order.
#pragma once

#include "scheduler.h"

namespace sim {

// Waits until it is this cluster's turn in block order. If the launch must be rolled back instead, the function does
// not return. `what` completes the sentence "its blocks ..." in the explanation why the launch runs on one worker.
void in_block_order(const char* what);

// Returns the number of the worker's next cluster, or a number past the grid's last one. `checked`: whether the cluster
// is to run with checks.
uint64_t take_cluster(Worker& worker, bool* checked);
// Called when one of the worker's clusters has ended.
void cluster_ended(Worker& worker);
// Called when the worker has left the grid because of `worker.fault`, on the host's stack.
void record_fault_in_order(Worker& worker);
// Called when the cluster whose turn it is polls without progress, because it waits for a later block. Lets later
// blocks run.
void let_later_blocks_go();

// Returns the number of workers for a launch. If it is one, grid.one_worker_reason gives the reason.
unsigned workers_for(Grid& grid);
// Called when a launch has ended or was rolled back.
void remember_order(const Grid& grid);
void forget_orders();

// In launch.cpp: starts the other workers; returns false when none can be started.
bool start_helpers(Grid& grid);

}  // namespace sim
