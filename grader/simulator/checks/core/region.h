// Regions: every piece of memory that has bounds of its own - a tensor, an allocation, a __device__ variable, a shared
// array - and the shadow cells that remember who accessed what in it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/events.h"
#include "runtime/thread.h"
#include "checks/core/shadow_cell.h"

namespace sim::checks {

// Distributed: the shared memory of another block of the cluster.
enum class Space : uint8_t { shared, global, constant, distributed };

enum class RegionKind : uint8_t {
    tensor,
    device_allocation,  // cudaMalloc
    async_allocation,   // cudaMallocAsync
    managed,
    pinned_host,
    device_heap,    // malloc in a kernel
    pageable_host,  // no allocation of ours: the host's own memory
    device_variable,
    constant_variable,
    shared_array,
    dynamic_shared,
    local_array,  // of one thread: named in a finding, and not kept
};

// Which accesses are known to be older, per kind of memory: an index into ThreadState::floors.
enum Window : uint8_t { shared_window, global_window, initialized_window, windows };

struct Region {
    uintptr_t base;
    size_t bytes;
    ShadowCell* cells;  // null: not tracked, because nobody may write to it
    uint8_t shift;      // log2 of the bytes for each cell
    Space space;
    RegionKind kind;
    bool read_only;    // the launcher takes it as pointer to const
    bool initialized;  // the host wrote all of it
    bool expected;     // the kernel must write all of it
    bool freed;
    uint32_t id;
    unsigned element_bytes;
    int ndim;
    int64_t shape[8];
    char name[64];
    char dtype[16];
    const void* allocated_at;   // return address of cudaMalloc's caller
    uint32_t allocated_serial;  // of its cudaMallocAsync; else 0
    const void* freed_at;

    Window window() const {
        return space == Space::shared ? shared_window : initialized ? initialized_window : global_window;
    }
    size_t cell_count() const { return (bytes + (size_t(1) << shift) - 1) >> shift; }
    bool contains(uintptr_t address, size_t size) const {
        return address - base < bytes && size <= bytes - (address - base);
    }
};

// --- global memory ---
Region& add_allocation(const events::Allocation& allocation);
Region* release_allocation(uintptr_t base, const void* address);  // null when there is none
void mark_written(uintptr_t address, size_t bytes);
void mark_read_only(uintptr_t base);
void mark_expected(uintptr_t base);
void forget_regions();
// Clears what is known about the order of accesses, when the numbers of blocks start again.
void age_regions();

// Whether code of the host may access it, too.
inline bool host_shares(const Region& region) {
    return region.kind == RegionKind::managed || region.kind == RegionKind::pinned_host;
}

// The live region that holds the address, or null. Includes __device__ and __constant__ variables.
Region* find_region(uintptr_t address);
// For an address that is in no region: the one it most likely missed (freed ones too), or null.
Region* nearest_region(uintptr_t address);
// Calls visit(region) for every allocation, by address.
void each_allocation(void (*visit)(Region&, void*), void* context);
// The same for the __device__ variables that kernels have accessed.
void each_variable(void (*visit)(Region&, void*), void* context);

// Makes the cells of a region smaller, because a smaller piece than a cell is accessed.
void refine(Region& region, unsigned shift);
// Gives a region its cells, if it has none yet and may be written.
void track(Region& region);

// Null when the process may have no more memory: then accesses there are not checked, and the report says so.
ShadowCell* map_cells(size_t count);
bool cells_were_refused();
void unmap_cells(ShadowCell* cells, size_t count);
// Repeats each of `count` cells 1 << by times, in place.
void split_cells(ShadowCell* cells, size_t count, unsigned by);

uint32_t new_region_id();

}  // namespace sim::checks
