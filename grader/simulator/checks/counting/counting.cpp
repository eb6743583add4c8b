#include "checks/counting/counting.h"

#include <algorithm>

#include "checks/core/state.h"

namespace sim::checks {

namespace {

Growable<KernelRecord> kernels;
uint64_t allocated;  // bytes of memory that is not freed yet

bool is_scratch(const Region& region) {
    return region.kind != RegionKind::tensor && region.kind <= RegionKind::device_heap;
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

RunCounters run_counters;

void forget_run_counters() {
    run_counters = {};
    allocated = 0;
}

void count_allocation(const Region& region) {
    if (!is_scratch(region)) return;
    allocated += region.bytes;
    run_counters.scratch_bytes = std::max(run_counters.scratch_bytes, allocated);
}

void count_release(const Region& region) {
    if (is_scratch(region)) allocated -= region.bytes;
}

uint64_t scratch_bytes() {
    uint64_t sum = run_counters.scratch_bytes;
    each_variable([](Region& region, void* total) { *static_cast<uint64_t*>(total) += region.bytes; }, &sum);
    return sum;
}

void count_copy(const Region* to, const Region* from, size_t bytes) {
    if (!is_host(from)) run_counters.copied_bytes += bytes;
    if (!is_host(to)) run_counters.copied_bytes += bytes;
    bool to_tensor = to && to->kind == RegionKind::tensor;
    if (is_host(from) ? to_tensor : is_host(to)) run_counters.host_bytes += bytes;
}

void count_fill(const Region* to, size_t bytes) {
    if (!is_host(to)) run_counters.copied_bytes += bytes;
}

}  // namespace sim::checks
