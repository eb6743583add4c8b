// __syncthreads and its variants, PTX's named barriers, and the barrier of a grid.
#include "sim/barrier.h"

#include "scheduler.h"
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
    self.polled = nullptr;
}

// All live threads have arrived: everybody may go on. The completing thread is made ready like the others.
void complete_block_barrier(Block& block) {
    if (block.launch->checks_enabled) {
        unsigned participants[max_warps_per_block] = {};
        for (unsigned w = 0; w < block.warp_count; ++w) participants[w] = block.warps[w].at_barrier;
        events::barrier(block, 0, participants);
    }
    block.barrier_true = block.predicates;
    block.barrier_participants = block.barrier_arrived;
    block.predicates = 0;
    block.barrier_arrived = 0;
    block.barrier_reported = false;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        make_ready(block.warps[w], block.warps[w].at_barrier);
        block.warps[w].at_barrier = 0;
    }
    current_worker->spin_rounds = 0;
}

// The completing thread goes on at once instead of waiting for its turn.
inline void go_on(Thread& self) {
    self.warp->ready &= ~(1u << self.lane);
    self.state = State::running;
}

// Returns when all live threads of the block have come; the block then knows how many predicates were true.
inline Block* arrive(Site site, bool predicate, const void* address) {
    Thread* self = current_thread;
    if (!self) return nullptr;
    Block& block = *self->block;
    wait_at(*self, Wait::block_barrier, 0, site, address);
    if (block.barrier_arrived++ == 0) {
        block.barrier_site = site;
        block.barrier_first = self;
    } else if (block.barrier_site != site && !block.barrier_reported) {
        block.barrier_reported = true;
        events::sync_error(events::SyncError::barrier_sites_differ, block, self, nullptr);
    }
    block.predicates += predicate;
    self->warp->at_barrier |= 1u << self->lane;
    if (block.barrier_arrived == block.live) {
        complete_block_barrier(block);
        go_on(*self);
    } else {
        switch_away(*self);
    }
    return &block;
}

void complete_named(Block& block, unsigned id) {
    NamedBarrier& barrier = block.named[id];
    if (block.launch->checks_enabled) events::barrier(block, id, barrier.participants);
    for (unsigned w = 0; w < block.warp_count; ++w) {
        Warp& warp = block.warps[w];
        warp.at_named &= ~barrier.waiting[w];
        make_ready(warp, barrier.waiting[w]);
        barrier.waiting[w] = barrier.participants[w] = 0;
    }
    barrier.expected = barrier.arrived = 0;
    current_worker->spin_rounds = 0;
}

// Counts the thread in. True when it is the last one.
bool arrive_named(Thread& self, unsigned id, unsigned threads, bool waits) {
    Block& block = *self.block;
    // The barrier counts whole warps, so the threads of a half-full last warp count for 32.
    unsigned whole = block.warp_count * lanes_per_warp;
    if (id >= named_barriers || threads % lanes_per_warp != 0 || threads > whole) {
        events::sync_error(events::SyncError::barrier_threads_invalid, block, &self,
                           "bar.sync takes a barrier 0..15 and a number of threads that is a multiple of 32 and not "
                           "above the block's");
        kill_launch(cudaErrorLaunchFailure);
    }
    NamedBarrier& barrier = block.named[id];
    if (barrier.arrived == 0) {
        barrier.expected = threads;
        for (unsigned w = 0; w < block.warp_count; ++w) barrier.waiting[w] = barrier.participants[w] = 0;
    } else if (barrier.expected != threads) {
        events::sync_error(events::SyncError::barrier_threads_invalid, block, &self,
                           "threads came to one barrier with different numbers of threads to wait for");
        kill_launch(cudaErrorLaunchFailure);
    }
    unsigned bit = 1u << self.lane;
    unsigned w = self.warp->index;
    barrier.participants[w] |= bit;
    if (waits) barrier.waiting[w] |= bit;
    // Lanes that do not exist come along with the last one of their warp that does.
    bool whole_warp = barrier.participants[w] == self.warp->existing;
    barrier.arrived +=
        1 + (whole_warp ? lanes_per_warp - static_cast<unsigned>(__builtin_popcount(self.warp->existing)) : 0);
    return barrier.arrived == barrier.expected;
}

void complete_grid_barrier(Worker& worker) {
    if (worker.grid->checks_enabled) events::grid_sync(*worker.grid);
    worker.grid_arrived = 0;
    worker.spin_rounds = 0;
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        for (unsigned w = 0; w < block->warp_count; ++w) {
            make_ready(block->warps[w], block->warps[w].at_grid);
            block->warps[w].at_grid = 0;
        }
    }
}

}  // namespace

void block_barrier(Site site) { arrive(site, false, CALLER); }

int block_barrier_count(Site site, int predicate) {
    Block* block = arrive(site, predicate != 0, CALLER);
    return block ? static_cast<int>(block->barrier_true) : predicate != 0;
}

int block_barrier_and(Site site, int predicate) {
    Block* block = arrive(site, predicate != 0, CALLER);
    return block ? block->barrier_true == block->barrier_participants : predicate != 0;
}

int block_barrier_or(Site site, int predicate) {
    Block* block = arrive(site, predicate != 0, CALLER);
    return block ? block->barrier_true != 0 : predicate != 0;
}

void named_barrier_sync(Site site, unsigned id, unsigned threads) {
    Thread* self = current_thread;
    if (!self) return;
    if (threads == 0 && id == 0) {
        arrive(site, false, CALLER);
        return;
    }
    if (threads == 0) threads = self->block->warp_count * lanes_per_warp;
    wait_at(*self, Wait::named_barrier, id, site, CALLER);
    bool last = arrive_named(*self, id, threads, true);
    self->warp->at_named |= 1u << self->lane;
    if (last) {
        complete_named(*self->block, id);
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
    if (self->block->launch->checks_enabled) events::barrier_arrive(*self, id);
    if (arrive_named(*self, id, threads, false)) complete_named(*self->block, id);
}

void grid_barrier(Site site) {
    Thread* self = current_thread;
    if (!self) return;
    Worker& worker = *current_worker;
    wait_at(*self, Wait::grid_barrier, 0, site, CALLER);
    if (!worker.grid->cooperative) {
        events::sync_error(events::SyncError::grid_sync_not_cooperative, *self->block, self,
                           "a grid can only synchronise when it was launched by cudaLaunchCooperativeKernel");
        kill_launch(cudaErrorLaunchFailure);
    }
    self->warp->at_grid |= 1u << self->lane;
    if (++worker.grid_arrived == worker.live_threads) {
        complete_grid_barrier(worker);
        go_on(*self);
    } else {
        switch_away(*self);
    }
}

// Threads that have exited are not waited for.
void complete_barriers_after_exit(Block& block) {
    Worker& worker = *current_worker;
    if (block.barrier_arrived && block.barrier_arrived == block.live) complete_block_barrier(block);
    if (worker.grid_arrived && worker.grid_arrived == worker.live_threads) complete_grid_barrier(worker);
}

}  // namespace sim
