// From the accesses of single threads to the requests of warps.
//
// Lanes run one after another, but on a GPU the k-th access of each lane to the same place in the code happens at once:
// one request, which global memory serves in 32-byte sectors and shared memory in wavefronts. So each lane's addresses are logged,
// and when the lanes of the warp have caught up with each other, the k-th entries of all lanes are counted together.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

constexpr unsigned log_entries = 256;
// Rows of a power of two would all fall into the same few sets of the cache.
constexpr unsigned log_row = log_entries + 16;

struct RequestLog {
    WarpState* warp;  // null: empty
    AccessSite* site;
    RequestLog* next;  // free or parked ones
    uint16_t count[lanes_per_warp];
    unsigned lanes;  // that have entries
    uint32_t entry[lanes_per_warp][log_row];
};

// Lets site.next point to where the thread's next entry goes.
void bind_log(AccessSite& site, ThreadState& thread);
// The thread's row is full: lets the other lanes catch up, then counts, and leaves the site to be bound again.
void log_full(AccessSite& site, ThreadState& thread);

// Counts what the warp's lanes have logged.
void flush_warp(WarpState& warp);
void flush_block(BlockState& block);
void flush_site(AccessSite& site);
// Forgets all logs without counting: the launch was ended half way.
void drop_logs(WorkerState& worker);

}  // namespace sim::checks
