#include "checks/counting/counting.h"

#include "checks/core/state.h"

namespace sim::checks {

namespace {

Growable<KernelRecord> kernels;
uint64_t allocated, peak_allocated;

uint64_t by_host, by_copies;
uint64_t submitted, instantiated;
uint64_t copied_asynchronously, prefetched, early;

bool is_scratch(const Region& region) {
    switch (region.kind) {
        case RegionKind::device_allocation:
        case RegionKind::async_allocation:
        case RegionKind::managed:
        case RegionKind::pinned_host:
        case RegionKind::device_heap:
            return true;
        default:
            return false;
    }
}

// Calls visit(list) for each list of counts that are kept by place in the code.
template <typename F>
void each_places(KernelRecord& record, F visit) {
    visit(record.barrier_sites);
    visit(record.tensor_sites);
    visit(record.operand_sites);
}

}  // namespace

bool is_host(const Region* region) {
    return !region || region->kind == RegionKind::managed || region->kind == RegionKind::pinned_host;
}

unsigned kernel_index(const char* name) {
    for (size_t i = 0; i < kernels.size(); ++i)
        if (!strncmp(kernels[i].name, name, sizeof kernels[i].name - 1)) return static_cast<unsigned>(i);
    KernelRecord record = {};
    strncpy(record.name, name, sizeof record.name - 1);
    record.sites = new Growable<SiteCounters>();
    each_places(record, [](Growable<PlaceCount>*& places) { places = new Growable<PlaceCount>(); });
    kernels.push(record);
    return static_cast<unsigned>(kernels.size() - 1);
}

KernelRecord& kernel(unsigned index) { return kernels[index]; }
size_t kernel_count() { return kernels.size(); }

void collect(KernelRecord& record) {
    static KernelRecord* into;
    into = &record;
    each_worker([](WorkerState& worker) {
        worker.sites.each([](AccessSite& site) {
            if (site.counters.requests == 0) return;
            SiteCounters counted = {site.id, site.space, site.access, static_cast<uint8_t>(1u << site.size_log2),
                                    site.counters};
            site.counters = {};
            for (SiteCounters& known : *into->sites) {
                if (known.site != counted.site || known.space != counted.space || known.access != counted.access ||
                    known.size != counted.size)
                    continue;
                known.counters.add(counted.counters);
                return;
            }
            into->sites->push(counted);
        });
    });
}

void add_count(Growable<PlaceCount>& counts, uint16_t site, uint64_t count) {
    for (PlaceCount& known : counts) {
        if (known.site != site) continue;
        known.count += count;
        return;
    }
    counts.push({site, count});
}

void forget_kernels() {
    for (KernelRecord& record : kernels) {
        delete record.sites;
        each_places(record, [](Growable<PlaceCount>*& places) { delete places; });
    }
    kernels.clear();
}

void count_allocation(const Region& region) {
    if (!is_scratch(region)) return;
    allocated += region.bytes;
    if (allocated > peak_allocated) peak_allocated = allocated;
}

void count_release(const Region& region) {
    if (is_scratch(region)) allocated -= region.bytes;
}

uint64_t scratch_bytes() {
    uint64_t sum = peak_allocated;
    each_variable([](Region& region, void* total) { *static_cast<uint64_t*>(total) += region.bytes; }, &sum);
    return sum;
}

void forget_scratch() { allocated = peak_allocated = 0; }

void count_copy(const Region* to, const Region* from, size_t bytes) {
    if (!is_host(from)) by_copies += bytes;
    if (!is_host(to)) by_copies += bytes;
    bool to_tensor = to && to->kind == RegionKind::tensor;
    if (is_host(from) ? to_tensor : is_host(to)) by_host += bytes;
}

void count_fill(const Region* to, size_t bytes) {
    if (!is_host(to)) by_copies += bytes;
}

void count_host_access(size_t bytes) { by_host += bytes; }

uint64_t host_bytes() { return by_host; }
uint64_t copied_bytes() { return by_copies; }

void forget_copies() { by_host = by_copies = 0; }

void count_submission() { ++submitted; }
void count_graph() { ++instantiated; }
// Several workers may add at the same time.
void count_async_copy(size_t bytes) { __atomic_fetch_add(&copied_asynchronously, bytes, __ATOMIC_RELAXED); }
void count_prefetched(size_t bytes) { __atomic_fetch_add(&prefetched, bytes, __ATOMIC_RELAXED); }
void count_early(size_t bytes) { __atomic_fetch_add(&early, bytes, __ATOMIC_RELAXED); }

uint64_t submissions() { return submitted; }
uint64_t graphs() { return instantiated; }
uint64_t async_bytes() { return copied_asynchronously; }
uint64_t prefetched_bytes() { return prefetched; }
uint64_t early_bytes() { return early; }

void return_async_bytes(uint64_t copied, uint64_t prefetched_before, uint64_t early_before) {
    copied_asynchronously = copied;
    prefetched = prefetched_before;
    early = early_before;
}

void forget_submissions() { submitted = instantiated = copied_asynchronously = prefetched = early = 0; }

}  // namespace sim::checks
