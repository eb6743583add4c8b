// __syncthreads and its variants, PTX's named barriers, and the barriers of a cluster and of a grid.
#include "sim/barrier.h"

#include "misuse.h"
#include "sim/cluster.h"
#include "sim/error_codes.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

void wait_at(Thread& self, Wait kind, unsigned number, Site site, const void* address) {
    self.state = State::waiting;
    self.wait = kind;
    self.wait_detail = static_cast<uint8_t>(number);
    self.wait_mask = 0;
    self.wait_site = site;
    self.call_address = address;
}

// Adds the thread to the arrived lanes of its warp.
inline void arrive_in_warp(Barrier& barrier, Thread& self, unsigned number, bool waits) {
    barrier.stalled |= self.stalled;
    if (!self.stalled) self.polled = nullptr;
    unsigned bit = 1u << self.lane;
    auto& at = self.warp->at_barrier[number];
    at.arrived |= bit;
    if (waits) at.waiting |= bit;
}

// Makes the block's waiting threads ready.
void release(Block& block, unsigned number) {
    for (unsigned w = 0; w < block.warp_count; ++w) {
        Warp& warp = block.warps[w];
        make_ready(warp, warp.at_barrier[number].waiting);
        warp.at_barrier[number] = {0, 0};
    }
}

void begin_again(Barrier& barrier) {
    barrier.was_true = barrier.predicates;
    barrier.participants = barrier.arrived;
    barrier.predicates = barrier.expected = barrier.arrived = 0;
    barrier.reported = false;
    // If the last poll of an arrived thread saw nothing new, the barrier may be part of its polling loop.
    if (!barrier.stalled) current_worker->spin_rounds = 0;
    barrier.stalled = false;
}

// All threads have arrived. The completing thread becomes ready like the others.
void complete(Block& block, unsigned number) {
    if (block.checked) {
        unsigned participants[max_warps_per_block] = {};
        for (unsigned w = 0; w < block.warp_count; ++w) participants[w] = block.warps[w].at_barrier[number].arrived;
        events::barrier(block, number, participants);
    }
    release(block, number);
    begin_again(block.barriers[number]);
}

void complete_grid(Worker& worker) {
    if (worker.grid->checks_enabled) events::grid_sync();
    for (BlockStorage* block = worker.resident; block; block = block->next) release(*block, grid_number);
    begin_again(worker.grid_barrier);
}

void complete_cluster(Cluster& cluster) {
    if (cluster.blocks[0]->checked) events::cluster_complete(cluster);
    for (unsigned rank = 0; rank < cluster.size; ++rank) release(*cluster.blocks[rank], cluster_number);
    begin_again(cluster.barrier);
}

[[noreturn]] void counts_differ(Thread& self) {
    events::sync_error(events::SyncError::barrier_threads_invalid, *self.block, &self,
                       "threads use one barrier with different thread counts: all must pass the same count");
    kill_launch(cudaErrorLaunchFailure);
}

// The completing thread continues at once instead of waiting for its turn.
inline void go_on(Thread& self) {
    self.warp->ready &= ~(1u << self.lane);
    self.state = State::running;
}

// Returns when all live threads of the block have arrived; the barrier then has the number of true predicates.
inline Barrier* block_sync(Site site, bool predicate, const void* address) {
    Thread* self = current_thread;
    if (!self) return nullptr;
    Block& block = *self->block;
    Barrier& barrier = block.barriers[0];
    wait_at(*self, Wait::block_barrier, 0, site, address);
    if (barrier.arrived++ == 0) {
        barrier.site = site;
        barrier.first = self;
    } else if (barrier.expected) {
        counts_differ(*self);
    } else if (barrier.site != site && !barrier.reported) {
        barrier.reported = true;
        events::sync_error(events::SyncError::barrier_sites_differ, block, self, nullptr);
    }
    barrier.predicates += predicate;
    arrive_in_warp(barrier, *self, 0, true);
    if (barrier.arrived == block.live) {
        complete(block, 0);
        go_on(*self);
    } else {
        switch_away(*self);
    }
    return &barrier;
}

// Counts the thread as arrived at a named barrier. Returns true for the last one.
bool arrive(Thread& self, unsigned number, unsigned threads, bool waits) {
    Block& block = *self.block;
    // The barrier counts whole warps, so a partial last warp counts as 32 threads.
    unsigned whole = block.warp_count * lanes_per_warp;
    if (number >= named_barriers || threads % lanes_per_warp != 0 || threads > whole) {
        events::sync_error(events::SyncError::barrier_threads_invalid, block, &self,
                           "invalid bar.sync operands: the barrier must be 0..15, the thread count a multiple of 32 "
                           "and at most the block size");
        kill_launch(cudaErrorLaunchFailure);
    }
    Barrier& barrier = block.barriers[number];
    if (barrier.arrived == 0) barrier.expected = threads;
    if (barrier.expected != threads) counts_differ(self);
    arrive_in_warp(barrier, self, number, waits);
    // In a partial last warp, the missing lanes count as arrived when the last existing lane has arrived.
    unsigned existing = self.warp->existing;
    bool whole_warp = self.warp->at_barrier[number].arrived == existing;
    barrier.arrived += 1 + (whole_warp ? lanes_per_warp - static_cast<unsigned>(__builtin_popcount(existing)) : 0);
    return barrier.arrived == barrier.expected;
}

// Arrives at the cluster barrier. PTX leaves the behavior undefined if a thread's arrives and waits do not alternate
// (PTX ISA, "barrier.cluster"), so this is a finding.
void arrive_at_cluster(Thread& self, bool releases) {
    unsigned bit = 1u << self.lane;
    if (self.warp->owe_cluster_wait & bit) {
        misused(self, self.wait_site, "second barrier.cluster.arrive without a barrier.cluster.wait in between");
    }
    self.warp->owe_cluster_wait |= bit;
    Cluster& cluster = *self.block->cluster;
    if (self.block->checked) events::cluster_arrive(self, releases);
    arrive_in_warp(cluster.barrier, self, cluster_number, false);
    if (++cluster.barrier.arrived == cluster.live) complete_cluster(cluster);
}

void wait_for_cluster(Thread& self, Site site, const void* address) {
    unsigned bit = 1u << self.lane;
    self.call_address = address;
    if (!(self.warp->owe_cluster_wait & bit)) {
        misused(self, site, "barrier.cluster.wait without an earlier barrier.cluster.arrive");
    }
    self.warp->owe_cluster_wait &= ~bit;
    auto& at = self.warp->at_barrier[cluster_number];
    if (at.arrived & bit) {  // the phase is not complete
        wait_at(self, Wait::cluster_barrier, 0, site, address);
        at.waiting |= bit;
        switch_away(self);
    }
    if (self.block->checked) events::cluster_waited(self);
}

}  // namespace

void forget_arrivals(Block& block) {
    for (unsigned number = 0; number < named_barriers; ++number) block.barriers[number] = {};
    for (unsigned w = 0; w < block.warp_count; ++w)
        for (auto& at : block.warps[w].at_barrier) at = {0, 0};
}

void block_barrier(Site site) { block_sync(site, false, CALLER); }

int block_barrier_count(Site site, int predicate) {
    Barrier* barrier = block_sync(site, predicate != 0, CALLER);
    return barrier ? static_cast<int>(barrier->was_true) : predicate != 0;
}

int block_barrier_and(Site site, int predicate) {
    Barrier* barrier = block_sync(site, predicate != 0, CALLER);
    return barrier ? barrier->was_true == barrier->participants : predicate != 0;
}

int block_barrier_or(Site site, int predicate) {
    Barrier* barrier = block_sync(site, predicate != 0, CALLER);
    return barrier ? barrier->was_true != 0 : predicate != 0;
}

void named_barrier_sync(Site site, unsigned id, unsigned threads) {
    Thread* self = current_thread;
    if (!self) return;
    if (threads == 0 && id == 0) {
        block_sync(site, false, CALLER);
        return;
    }
    if (threads == 0) threads = self->block->warp_count * lanes_per_warp;
    wait_at(*self, Wait::named_barrier, id, site, CALLER);
    if (arrive(*self, id, threads, true)) {
        complete(*self->block, id);
        go_on(*self);
    } else {
        switch_away(*self);
    }
}

void named_barrier_arrive(Site site, unsigned id, unsigned threads) {
    Thread* self = current_thread;
    if (!self) return;
    self->wait_site = site;
    self->call_address = CALLER;
    if (self->block->checked) events::barrier_arrive(*self, id);
    if (arrive(*self, id, threads, false)) complete(*self->block, id);
}

void wait_for_grid_before() {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = CALLER;
    if (self->block->checked) events::grid_dependency_waited(*self);
}

void grid_barrier(Site site) {
    Thread* self = current_thread;
    if (!self) return;
    Worker& worker = *current_worker;
    wait_at(*self, Wait::grid_barrier, 0, site, CALLER);
    if (!worker.grid->cooperative) {
        events::sync_error(events::SyncError::grid_sync_not_cooperative, *self->block, self,
                           "grid-wide synchronization requires a launch with cudaLaunchCooperativeKernel");
        kill_launch(cudaErrorLaunchFailure);
    }
    arrive_in_warp(worker.grid_barrier, *self, grid_number, true);
    if (++worker.grid_barrier.arrived == worker.live_threads) {
        complete_grid(worker);
        go_on(*self);
    } else {
        switch_away(*self);
    }
}

void cluster_arrive(Site site, bool releases) {
    Thread* self = current_thread;
    if (!self) return;
    self->wait_site = site;
    self->call_address = CALLER;
    arrive_at_cluster(*self, releases);
}

void cluster_wait(Site site) {
    Thread* self = current_thread;
    if (self) wait_for_cluster(*self, site, CALLER);
}

void cluster_barrier(Site site) {
    Thread* self = current_thread;
    if (!self) return;
    self->wait_site = site;
    self->call_address = CALLER;
    arrive_at_cluster(*self, true);
    wait_for_cluster(*self, site, CALLER);
}

// Exited threads do not count as expected.
void complete_cluster_after_exit(Thread& thread) {
    Cluster& cluster = *thread.block->cluster;
    auto& at = thread.warp->at_barrier[cluster_number];
    unsigned bit = 1u << thread.lane;
    if (at.arrived & bit) --cluster.barrier.arrived;  // the thread exits between arrive and wait
    at.arrived &= ~bit;
    if (cluster.barrier.arrived && cluster.barrier.arrived == cluster.live) complete_cluster(cluster);
}

void complete_barriers_after_exit(Block& block) {
    Worker& worker = *current_worker;
    const Barrier& all = block.barriers[0];
    if (all.arrived && all.expected == 0 && all.arrived == block.live) complete(block, 0);
    if (worker.grid_barrier.arrived && worker.grid_barrier.arrived == worker.live_threads) complete_grid(worker);
}

}  // namespace sim
