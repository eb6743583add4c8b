// Barriers of a block and of a grid, and the memory fences.
#pragma once

#include "sim/scope.h"
#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

void block_barrier(Site site);                      // __syncthreads
int block_barrier_count(Site site, int predicate);  // __syncthreads_count
int block_barrier_and(Site site, int predicate);    // __syncthreads_and
int block_barrier_or(Site site, int predicate);     // __syncthreads_or
// griddepcontrol.wait. Grids run one after another here, so only the checks detect that it is missing.
void wait_for_grid_before();
void grid_barrier(Site site);  // grid_group::sync of a cooperative launch

// PTX's bar.sync id, threads / bar.arrive id, threads; id 0..15, threads a multiple of 32 (0: the whole block).
void named_barrier_sync(Site site, unsigned id, unsigned threads);
void named_barrier_arrive(Site site, unsigned id, unsigned threads);

void fence(Scope scope,
           MemoryOrder order = MemoryOrder::acq_rel);  // __threadfence_block, __threadfence, __threadfence_system

}  // namespace sim
#pragma GCC visibility pop

#define __syncthreads() ::sim::block_barrier(SIM_HERE)
#define __syncthreads_count(...) ::sim::block_barrier_count(SIM_HERE, __VA_ARGS__)
#define __syncthreads_and(...) ::sim::block_barrier_and(SIM_HERE, __VA_ARGS__)
#define __syncthreads_or(...) ::sim::block_barrier_or(SIM_HERE, __VA_ARGS__)

inline void __threadfence_block() { ::sim::fence(::sim::Scope::block); }
inline void __threadfence() { ::sim::fence(::sim::Scope::device); }
inline void __threadfence_system() { ::sim::fence(::sim::Scope::system); }
