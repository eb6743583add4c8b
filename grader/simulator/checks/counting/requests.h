// Combines the accesses of single threads into requests of warps.
//
// Lanes run one after another. On a GPU, the k-th accesses of all lanes at the same place in the code happen at once:
// they are one request, which global memory serves in 32-byte sectors and shared memory in wavefronts. So each lane's
// addresses are logged, and when all lanes of the warp have caught up, the k-th entries of all lanes are counted
// together.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

constexpr unsigned log_entries = 256;  // even, for the pairs of logs_destinations()
// The length of a lane's row in RequestLog::entry. It is not a power of two, so that the rows map to different cache
// sets.
constexpr unsigned log_row = log_entries + 16;

struct RequestLog {
    WarpState* warp;  // null: the log is empty
    AccessSite* site;
    RequestLog* next;  // next log in the list of free or parked logs
    uint16_t count[lanes_per_warp];
    unsigned lanes;  // lanes with entries
    uint32_t entry[lanes_per_warp][log_row];
};

// Points site.next at the thread's next entry.
void bind_log(AccessSite& site, ThreadState& thread);
// Called when the thread's row is full. Runs the other lanes until they have caught up, then counts the entries.
void log_full(AccessSite& site, ThreadState& thread);

// Returns whether each access logs two entries: its own, and the destination in shared memory. These are the 16-byte
// reads of cp.async: the destinations decide how many sectors the request counts (request.h).
inline bool logs_destinations(const AccessSite& site) {
    return site.access == Access::async_read && site.size_log2 == 4;
}
// Logs the destination of the access that was logged last. It is null for a copy through L1, which counts only the
// sectors that it reads.
inline void log_destination(AccessSite& site, const void* shared) {
    *site.next++ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared) >> 5);
}

// Counts what the warp's lanes have logged.
void flush_warp(WarpState& warp);
void flush_block(BlockState& block);
void flush_site(AccessSite& site);
// Drops all logs without counting them, because the launch was aborted.
void drop_logs(WorkerState& worker);

}  // namespace sim::checks
