#include "checks/report/trace.h"

namespace sim::checks {

unsigned trace_limit = 0;
Growable<TracedRequest> traces;

bool is_traced(const AccessSite& site, const WarpState& warp) {
    return site.traced[warp.warp->index] < trace_limit && warp.block->block->linear == 0;
}

void keep_request(AccessSite& site, const WarpState& warp, const Request& request) {
    unsigned index = warp.warp->index;
    TracedRequest kept = {};
    kept.site = site.id;
    kept.size = static_cast<uint8_t>(1u << site.size_log2);
    kept.access = site.access;
    kept.space = site.space;
    kept.kernel = the_launch.kernel;
    kept.serial = warp.block->first_serial;
    kept.warp = index;
    kept.number = site.traced[index]++;
    // Offsets in shared memory count from the block's first byte, so that they give the bank.
    uintptr_t base = site.region && site.space != Space::shared ? site.region->base : site.origin;
    if (site.region) memcpy(kept.name, site.region->name, sizeof kept.name);
    for (unsigned i = 0; i < request.count; ++i) {
        kept.lanes |= 1u << request.lane[i];
        intptr_t entry = request.entry[i];
        if (site.space == Space::distributed)
            entry = static_cast<int32_t>(
                request.entry[i]);  // negative if the other block's shared memory lies before this block's
        uintptr_t address = site.origin + (static_cast<uintptr_t>(entry) << site.size_log2);
        kept.offset[request.lane[i]] = static_cast<int64_t>(address - base);
    }
    static SpinLock lock;
    Locked locked(lock);
    traces.push(kept);
}

}  // namespace sim::checks
