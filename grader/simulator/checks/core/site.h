// Sites: the places in kernel code that access memory. A site is identified by the return address of its hook call.
//
// Each worker has its own record of a site, with the data for a fast check of the next access: the bounds and the
// shadow cells of the region that the site accessed last, and the log of the warp that executes the site.
#pragma once

#include <stdint.h>

#include "checks/core/containers.h"
#include "checks/counting/counters.h"
#include "checks/core/region.h"

namespace sim::checks {

struct BlockState;
struct ThreadState;
struct WorkerState;
struct RequestLog;

enum class Access : uint8_t {
    read,
    write,
    volatile_read,
    volatile_write,
    atomic,
    async_read,
    async_write,
    operand_read,
    allocation,  // the allocation of memory by cudaMallocAsync
    free,
};

constexpr bool is_write(Access access) {
    return access == Access::write || access == Access::volatile_write || access == Access::async_write;
}

struct alignas(64) AccessSite {
    const void* address;  // the return address
    // Fields of the fast path, which tests that the access is inside the region and that `next` belongs to this thread.
    uintptr_t base;
    size_t limit;  // offsets below it are in bounds for this access size; 0 while there is no region
    ShadowCell* cells;
    ThreadState* owner;  // the thread to whose log `next` points
    uint32_t* next;
    uint32_t* end;
    uintptr_t origin;  // the address from which offsets in log entries count
    uint8_t shift;     // log2 of the bytes per cell of the region
    uint8_t size_log2;
    Window window;
    bool guarded;  // the cells are shared with other workers
    uint16_t id;
    // Fields that the fast path does not need.
    Space space;
    Access access;
    bool touched;  // the site is in the worker's list of sites with a log
    Region* region;
    // The block of the last thread at this site. In a cluster, an address may be shared memory of this block for one
    // thread and of another block for the next thread.
    const BlockState* block;
    RequestLog* log;
    AccessSite* first;    // first variant: a place that accesses several kinds of memory has one variant for each
    AccessSite* sibling;  // the next variant
    Counters counters;
    uint8_t traced[32];  // requests recorded so far, per warp of the launch's first block
};

// The sites of a worker by return address.
class SiteTable {
  public:
    SiteTable();
    ~SiteTable();
    SiteTable(const SiteTable&) = delete;
    SiteTable& operator=(const SiteTable&) = delete;

    AccessSite* find(const void* address) {
        Slot& slot = slots_[place(address)];
        return __builtin_expect(slot.address == address, true) ? slot.site : find_slowly(address);
    }
    // Returns the site's variant for this kind of access. From now on find() returns it, too.
    AccessSite* variant(AccessSite* site, Space space, Access access, unsigned size_log2);
    template <typename F>
    void each(F visit) {
        for (AccessSite* first : sites_)
            for (AccessSite* site = first; site; site = site->sibling) visit(*site);
    }
    void clear();

  private:
    struct Slot {
        const void* address;
        AccessSite* site;
    };
    size_t place(const void* address) const {
        return static_cast<size_t>(reinterpret_cast<uintptr_t>(address) * uint64_t(0x9E3779B97F4A7C15u) >>
                                   (64 - slots_log2));
    }
    AccessSite* find_slowly(const void* address);

    static constexpr unsigned slots_log2 = 12;
    static constexpr size_t slots = size_t(1) << slots_log2;
    Slot* slots_;
    HashMap<AccessSite*> by_address_;
    Growable<AccessSite*> sites_;
};

// Returns the number of a site, which is the same on all workers. 0 stands for no site.
uint16_t site_id(const void* address);
const void* site_address(uint16_t id);
bool is_site(const void* address);
size_t site_count();
// Forgets all site numbers except the first `kept`.
void forget_site_ids(size_t kept = 0);

}  // namespace sim::checks
