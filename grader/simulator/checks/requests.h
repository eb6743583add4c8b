// From the accesses of single threads to the requests of warps.
//
// Lanes run one after another, but on a GPU the k-th access of each lane to the same place in the code happens at once:
// one request, which memory serves in 32-byte sectors or in passes over its banks. So each lane's addresses are logged,
// and when the lanes of the warp have caught up with each other, the k-th entries of all lanes are counted together.
#pragma once

#include "checks/state.h"

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
// The thread's row is full: lets the other lanes catch up, then counts.
void log_full(AccessSite& site, ThreadState& thread);

// Counts what the warp's lanes have logged.
void flush_warp(WarpState& warp);
void flush_block(BlockState& block);
void flush_site(AccessSite& site);
// Forgets all logs without counting: the launch was ended half way.
void drop_logs(WorkerState& worker);

// --- which sectors of global memory a launch has touched ---
void begin_sectors(WorkerState& worker);
struct SectorTotals {
    uint64_t read;
    uint64_t written;
    uint64_t either;
};
SectorTotals end_sectors();

// --- traces ---
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
    int64_t offset[lanes_per_warp];  // from its start
};
extern unsigned trace_limit;  // requests to record for each site and warp
extern Growable<TracedRequest> traces;

}  // namespace sim::checks
