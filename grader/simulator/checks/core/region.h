// Regions: pieces of memory with their own bounds (a tensor, an allocation, a __device__ variable, a shared array), and
// the shadow cells that record the accesses to them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/events.h"
#include "runtime/thread.h"
#include "checks/core/shadow_cell.h"

namespace sim::checks {

// `distributed` is the shared memory of another block of the cluster.
enum class Space : uint8_t { shared, global, constant, distributed };

// The first kinds have the order of MemoryKind.
enum class RegionKind : uint8_t {
    tensor,
    device_allocation,  // cudaMalloc
    async_allocation,   // cudaMallocAsync
    managed,
    pinned_host,
    device_heap,    // malloc in a kernel
    pageable_host,  // the host's own memory, not allocated by the simulator
    device_variable,
    constant_variable,
    shared_array,
    dynamic_shared,
    local_array,  // a thread's array, named in findings only
};

// The kinds of memory that have separate entries in ThreadState::floors. An entry says which accesses are ordered
// before the thread's next access.
enum Window : uint8_t { shared_window, global_window, initialized_window, windows };

struct Region {
    uintptr_t base;
    size_t bytes;
    ShadowCell* cells;  // null: no access is recorded so far, or none need be, because no thread may write here
    uint8_t shift;      // log2 of the bytes per cell
    Space space;
    RegionKind kind;
    bool read_only;    // the launcher receives it as a pointer to const
    bool initialized;  // the host wrote all of it
    bool expected;     // kernels must write all of it
    bool freed;
    uint32_t id;
    unsigned element_bytes;
    int ndim;
    int64_t shape[8];
    char name[64];
    char dtype[16];
    const void* allocated_at;   // return address of the cudaMalloc call
    uint32_t allocated_serial;  // serial of the cudaMallocAsync; 0 for other memory
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
Region* release_allocation(uintptr_t base, const void* address);  // returns null if there is no such allocation
void mark_written(uintptr_t address, size_t bytes);
// Mark all memory as written, because blocks that ran without checks may have written any of it.
void assume_written();
void mark_read_only(uintptr_t base);
void mark_expected(uintptr_t base);
void forget_regions();
// Forgets which block made which access, because block serials start again at 1. Keeps what is initialized.
void age_regions();

// Returns whether host code may access the region, too.
inline bool host_shares(const Region& region) {
    return region.kind == RegionKind::managed || region.kind == RegionKind::pinned_host;
}

// Returns the live region that holds the address, or null. Includes __device__ and __constant__ variables.
Region* find_region(uintptr_t address);
// For an address in no region: returns the region that the program most likely meant to access, or null. It may be a
// freed region.
Region* nearest_region(uintptr_t address);
// Calls visit(region) for every allocation, sorted by address.
void each_allocation(void (*visit)(Region&, void*), void* context);
// Calls visit(region) for every __device__ variable that kernels have accessed.
void each_variable(void (*visit)(Region&, void*), void* context);

// Makes a region's cells smaller, because a piece smaller than a cell is accessed.
void refine(Region& region, unsigned shift);
// Creates the cells of a region that may be written, unless it has them already.
void track(Region& region);

// Returns null when the process cannot get more memory: accesses there are then not checked, and the report says so.
ShadowCell* map_cells(size_t count);
bool cells_were_refused();
void unmap_cells(ShadowCell* cells, size_t count);

uint32_t new_region_id();

// Calls visit(cell) for every existing cell of [address, address + bytes) of the region.
template <typename F>
void each_cell(const Region* region, uintptr_t address, size_t bytes, F visit) {
    if (!region || !region->cells || bytes == 0) return;
    size_t first = (address - region->base) >> region->shift;
    size_t last = (address - region->base + bytes - 1) >> region->shift;
    for (size_t i = first; i <= last && i < region->cell_count(); ++i) visit(region->cells[i]);
}

}  // namespace sim::checks
