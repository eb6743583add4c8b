// Stores single requests, for pictures that show which thread accesses which address.
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
    uint32_t serial;                 // serial of the block
    uint32_t warp;                   // number of the warp in its block
    uint32_t number;                 // how often the warp had executed the site before
    uint32_t lanes;                  // lanes that took part
    char name[64];                   // name of the memory
    int64_t offset[lanes_per_warp];  // from the start of the memory; in shared memory, from the block's first byte
};
extern Growable<TracedRequest> traces;
extern unsigned trace_limit;  // requests to keep for each site and warp

// Returns whether to keep the next request of this site and warp: only the first few, in the launch's first block, are
// kept.
bool is_traced(const AccessSite& site, const WarpState& warp);
// `request` must have all entries and lanes.
void keep_request(AccessSite& site, const WarpState& warp, const Request& request);

}  // namespace sim::checks
