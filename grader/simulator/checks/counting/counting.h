// Counters of finished launches, per kernel and site, and related totals.
#pragma once

#include "checks/core/containers.h"
#include "checks/counting/counters.h"
#include "checks/core/region.h"
#include "checks/core/site.h"
#include "runtime/tensor_type.h"

namespace sim::checks {

struct SiteCounters {
    uint16_t site;
    Space space;
    Access access;
    uint8_t size;  // bytes per access
    Counters counters;
};

struct PlaceCount {
    uint16_t site;
    uint64_t count;
};

struct KernelRecord {
    char name[256];
    uint3 grid, block;  // of the last launch
    uint64_t dynamic_shared_bytes;
    uint64_t static_shared_bytes;
    uint64_t launches;
    uint64_t blocks;
    uint64_t threads;
    uint64_t barriers;            // counted per block
    uint64_t touched_sectors[3];  // distinct 32-byte sectors of each launch, summed: read, written, either
    uint64_t first_read_sectors;  // sectors read that nothing had touched before: see touched_sectors.h
    uint64_t tensor_operations[tensor_types];
    Growable<SiteCounters>* sites;
    Growable<PlaceCount>* barrier_sites;
    Growable<PlaceCount>* tensor_sites;   // operations of tensor cores
    Growable<PlaceCount>* operand_sites;  // bytes that they read in shared memory through matrix descriptors
};

unsigned kernel_index(const char* name);
KernelRecord& kernel(unsigned index);
size_t kernel_count();
// Moves the counters of all workers' sites to the kernel.
void collect(KernelRecord& kernel);
void add_count(Growable<PlaceCount>& counts, uint16_t site, uint64_t count);
void forget_kernels();

// --- all launches and the host ---
extern RunCounters run_counters;
void forget_run_counters();
// Adds to a counter that several workers may change at the same time.
inline void add_to(uint64_t& counter, uint64_t value) { __atomic_fetch_add(&counter, value, __ATOMIC_RELAXED); }

// The peak in run_counters is that of allocations; scratch_bytes() adds the variables.
void count_allocation(const Region& region);
void count_release(const Region& region);
uint64_t scratch_bytes();

// Returns whether one side of a copy is host memory: managed, pinned, or pageable (null).
bool is_host(const Region* region);
void count_copy(const Region* to, const Region* from, size_t bytes);
void count_fill(const Region* to, size_t bytes);  // by cudaMemset

}  // namespace sim::checks
