// Counters of finished launches, by kernel and site, and what goes with them.
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
    uint8_t size;  // bytes
    Counters counters;
};

struct PlaceCount {
    uint16_t site;
    uint64_t count;
};

struct KernelRecord {
    char name[256];
    uint32_t grid[3];  // of the last launch
    uint32_t block[3];
    uint64_t dynamic_shared_bytes;
    uint64_t static_shared_bytes;
    uint64_t launches;
    uint64_t blocks;
    uint64_t threads;
    uint64_t barriers;            // of blocks
    uint64_t touched_sectors[3];  // distinct 32-byte sectors of each launch, summed: read, written, either
    uint64_t first_read_sectors;  // of those read, the ones that nothing had touched before: see touched_sectors.h
    uint64_t tensor_operations[tensor_types];
    Growable<SiteCounters>* sites;
    Growable<PlaceCount>* barrier_sites;
    Growable<PlaceCount>* tensor_sites;   // operations of tensor cores
    Growable<PlaceCount>* operand_sites;  // bytes that they read in shared memory by matrix descriptors
};

unsigned kernel_index(const char* name);
KernelRecord& kernel(unsigned index);
size_t kernel_count();
// Moves what the sites of all workers have counted into the kernel.
void collect(KernelRecord& kernel);
void add_count(Growable<PlaceCount>& counts, uint16_t site, uint64_t count);
void forget_kernels();

// --- device memory that a program allocates itself ---
void count_allocation(const Region& region);
void count_release(const Region& region);
uint64_t scratch_bytes();  // the most that was allocated at once, and the __device__ variables that kernels used
void forget_scratch();

// --- what the host does with memory of the device ---
// A copy by cudaMemcpy; null is memory of the host.
// Memory that the host reaches by itself; null is memory that is none of the device's.
bool is_host(const Region* region);
void count_copy(const Region* to, const Region* from, size_t bytes);
// An access of host code to memory that both sides can reach.
void count_host_access(size_t bytes);
uint64_t host_bytes();    // read from the device by the host, and written by it to tensors: work that no kernel does
uint64_t copied_bytes();  // of global memory, by copies: read and written
void forget_copies();

// --- what a launcher asks for, and what a kernel asks for ahead of time ---
// An operation that the host handed to a stream: a launch, a copy, a fill; the launch of a graph is one, whatever is in it.
void count_submission();
void count_graph();
uint64_t submissions();
uint64_t graphs();  // instantiated
// Bytes of cp.async, and their part that was still under way after its thread had waited for older copies.
void count_async_copy(size_t bytes);
void count_prefetched(size_t bytes);
uint64_t async_bytes();
uint64_t prefetched_bytes();
void forget_submissions();
void return_async_bytes(uint64_t copied, uint64_t prefetched);  // of a launch that was taken back

}  // namespace sim::checks
