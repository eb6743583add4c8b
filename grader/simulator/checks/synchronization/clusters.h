// The barrier of a cluster, and the accesses of its blocks to each other's shared memory.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// What a cluster's barrier orders: what the threads did before they arrived, before what they do after they have waited.
class ClusterBarrier {
  public:
    explicit ClusterBarrier(const Cluster& cluster);
    ~ClusterBarrier();
    ClusterBarrier(const ClusterBarrier&) = delete;
    ClusterBarrier& operator=(const ClusterBarrier&) = delete;

    void arrive(ThreadState& thread, bool releases);
    void complete(const Cluster& cluster);
    void wait(ThreadState& thread);

  private:
    // Of one block. Its threads may arrive at different times, and not all of them may.
    struct Arrivals {
        VectorClockBuilder* known = nullptr;
        // Of the last complete phase: what all threads of the block had done before, and the time after it.
        uint32_t joined = 0, after = 0;
        unsigned count = 0;
        uint32_t earliest = Epoch::time_pending, latest = 0;
        uint32_t barrier_time = 0;  // the latest barrier of the block that one of them knows
    };
    Arrivals arrivals_[max_cluster_blocks];
    const VectorClock* complete_ = nullptr;
    bool awaited_ = false, awaited_arriving_ = false;  // the grid before, by one that arrived
    // Threads with a common past get a common answer.
    const VectorClock* asked_ = nullptr;
    const VectorClock* asked_with_ = nullptr;
    const VectorClock* answer_ = nullptr;
};
ClusterBarrier& barrier_of(Cluster& cluster);
void forget_cluster(Cluster& cluster);

struct RemoteAccess {
    uintptr_t address;
    uint32_t time;
    uint16_t site;
    uint8_t access;
    uint8_t size_log2;
};
// An access to the shared memory of another block, which must not have ended.
void note_remote(ThreadState& thread, const AccessSite& site, uintptr_t address);
// The block has ended: all accesses of others to its shared memory must be known to it.
void check_remote(BlockState& block);
void forget_remote(BlockState& block);

}  // namespace sim::checks
