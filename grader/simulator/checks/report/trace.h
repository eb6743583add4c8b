// Requests kept whole, for pictures of which thread touches which address.
#pragma once

#include "checks/counting/request.h"
#include "checks/core/state.h"

namespace sim::checks {

struct TracedRequest {
    uint16_t site;
    uint8_t size;
    Access access;
    Space space;
    unsigned kernel;
    uint32_t serial;  // of the block
    uint32_t warp;
    uint32_t number;                 // which execution by this warp
    uint32_t lanes;                  // that took part
    char name[64];                   // of the memory
    int64_t offset[lanes_per_warp];  // from its start; in shared memory from the block's first byte
};
extern Growable<TracedRequest> traces;
extern unsigned trace_limit;  // requests to keep for each site and warp

// Whether the next request of this site and warp is to be kept: the first few of the launch's first block are.
bool is_traced(const AccessSite& site, const WarpState& warp);
// `request` has all entries and lanes.
void keep_request(AccessSite& site, const WarpState& warp, const Request& request);

}  // namespace sim::checks
