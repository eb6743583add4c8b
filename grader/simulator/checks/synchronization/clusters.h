// The barrier of a cluster, and the accesses of its blocks to each other's shared memory.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// A cluster barrier. After a thread's wait, its accesses are ordered after all accesses that any thread of the cluster
// made before arriving.
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
    // The arrivals of one block. Its threads may arrive at different times, and some may not arrive.
    struct Arrivals {
        VectorClockBuilder* known = nullptr;
        // For the last completed phase: accesses of the block's threads before `joined` are ordered. `after` is the
        // block's time at the end of the phase.
        uint32_t joined = 0, after = 0;
        unsigned count = 0;
        uint32_t earliest = Epoch::time_pending, latest = 0;
        uint32_t barrier_time = 0;  // the maximum of ThreadState::barrier_time of the arrived threads
    };
    Arrivals arrivals_[max_cluster_blocks];
    const VectorClock* complete_ = nullptr;
    // True if a thread that arrived had executed griddepcontrol.wait: in the last completed phase, in the current one.
    bool awaited_ = false, awaited_arriving_ = false;
    // Cache: threads with equal vector clocks get the same result.
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
// Records an access to the shared memory of another block, which must not have ended.
void note_remote(ThreadState& thread, const AccessSite& site, uintptr_t address);
// Called when the block has ended. Reports accesses of other blocks to its shared memory that are not ordered before
// its end.
void check_remote(BlockState& block);
void forget_remote(BlockState& block);

}  // namespace sim::checks
