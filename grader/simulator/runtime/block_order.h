// Blocks of one launch on several workers, with the results that they have one after another.
//
// Blocks that touch different memory, and memory that none of them writes, may run in any order. What one block can notice
// of another must happen in the order of the blocks: atomic operations on global memory, fences, printf, malloc, launches,
// polling, faults. Who is about to do such a thing calls in_block_order() before.
//
// The first cluster runs alone. When it does such a thing, so will others, and the launch stays on one worker. When a later
// one is the first to do it,
//   without checks, it waits until all earlier ones have ended, and later ones wait for it: its turn lasts until its end;
//   with checks, the launch is taken back, as if it had not begun, and runs again on one worker. The checks see plain
//   accesses, too, and call this function when two blocks conflict (checks/synchronization/parallel_blocks.h).
//
// Two things are not seen without checks. Plain and volatile accesses: blocks that communicate by them alone, without an
// atomic operation or a fence, have no defined result on a GPU either. And a block that polls what only later blocks will
// change must let them go on without order, if none of this came up in the first cluster.
#pragma once

#include "scheduler.h"

namespace sim {

// `what`: "its blocks ..." for who asks why a launch has one worker. Does not return where the launch is taken back or over.
void in_block_order(const char* what);

// The next cluster for the worker: its number, or one that the grid does not have.
uint64_t take_cluster(Worker& worker);
// One of the worker's clusters has ended.
void cluster_ended(Worker& worker);
// The worker has left the grid because of `worker.fault`. On the host's stack.
void record_fault_in_order(Worker& worker);
// Who has its turn polls in vain: what it waits for is for later blocks to do.
void let_later_blocks_go(Grid& grid);

// How many workers a launch may have; where that is one, grid.one_worker_because says why.
unsigned workers_for(Grid& grid);
// A launch has ended or was taken back.
void remember_order(const Grid& grid);
void forget_orders();

// launch.cpp: starts the other workers; false when there are none to be had.
bool start_helpers(Grid& grid);

}  // namespace sim
