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
    uint32_t grid[3];  // grid of the last launch
    uint32_t block[3];
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

// --- device memory that a program allocates itself ---
void count_allocation(const Region& region);
void count_release(const Region& region);
uint64_t scratch_bytes();  // peak of the bytes allocated at once, plus the __device__ variables that kernels used
void forget_scratch();

// --- the host's accesses to device memory ---
// Returns whether one side of a copy is host memory: managed, pinned, or pageable (null).
bool is_host(const Region* region);
void count_copy(const Region* to, const Region* from, size_t bytes);
void count_fill(const Region* to, size_t bytes);  // by cudaMemset
// Counts an access by host code to managed or pinned memory.
void count_host_access(size_t bytes);
// Returns the bytes of device memory that host code read plus the bytes of tensors that host code wrote.
uint64_t host_bytes();
uint64_t copied_bytes();  // bytes of global memory that copies read and wrote
void forget_copies();

// --- submitted operations, and prefetched bytes ---
// Counts an operation that the host submitted to a stream: a launch, a copy, a fill, or a graph launch.
void count_submission();
void count_graph();
uint64_t submissions();
uint64_t graphs();  // number of instantiated graphs
// Counts bytes of cp.async, those still in flight after the thread waited for older copies (prefetched), and the bytes of
// all copies to shared memory that were in flight when their block read another block's data (early).
void count_async_copy(size_t bytes);
void count_prefetched(size_t bytes);
void count_early(size_t bytes);
uint64_t async_bytes();
uint64_t prefetched_bytes();
uint64_t early_bytes();
void forget_submissions();
// Restores the counts after a launch was rolled back.
void return_async_bytes(uint64_t copied, uint64_t prefetched, uint64_t early);

}  // namespace sim::checks
