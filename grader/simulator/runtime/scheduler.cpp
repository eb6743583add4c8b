// The scheduler: one fiber per waiting thread, with direct switches from one to the next.
//
// Order: the lanes of a warp first, then the other warps of the block, then other resident blocks. The thread that
// completes a barrier continues without a switch. A fiber whose thread has ended runs the next unstarted thread on the
// same stack, so a kernel that never waits needs no switch at all.
#include "scheduler.h"

#include "async_operations.h"
#include "block_order.h"
#include "context.h"
#include "growable.h"
#include "host_poll_detector.h"
#include "limits.h"
#include "program.h"
#include "settings.h"
#include "sim/error_codes.h"

namespace sim {

__thread Thread* current_thread = nullptr;
__thread Worker* current_worker = nullptr;

namespace {

Counter block_serial;

// If for this many rounds all runnable threads have only polled mbarriers, that is a deadlock. One round is not enough:
// a thread may poll several mbarriers in turn, or give up after some attempts.
constexpr unsigned mbarrier_patience = 500;

// In so many rounds before a livelock, threads without checks are sampled: host_poll_detector.h. In a few rounds of 64
// only one lane runs, so each thread is sampled at least 84 times.
constexpr unsigned sampled_rounds = 100;

uint64_t next_random(Worker& worker) {
    // This is xorshift64. Any generator whose numbers depend only on the seed would do.
    uint64_t x = worker.random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return worker.random_state = x;
}

// Returns one of the bits of `set`, which is not empty.
inline unsigned choose(Worker& worker, unsigned set) {
    if (worker.order == Order::forward) return static_cast<unsigned>(__builtin_ctz(set));
    if (worker.order == Order::reverse) return 31u - static_cast<unsigned>(__builtin_clz(set));
    unsigned skip = static_cast<unsigned>(next_random(worker) >> 33) % static_cast<unsigned>(__builtin_popcount(set));
    while (skip--) set &= set - 1;
    return static_cast<unsigned>(__builtin_ctz(set));
}

// Returns the warp to run after `index`: round robin, so that no warp starves another that waits for it.
inline unsigned choose_warp(Worker& worker, unsigned runnable, unsigned index) {
    if (worker.order == Order::forward) {
        unsigned later = index == 31 ? 0 : runnable & (~0u << (index + 1));
        return static_cast<unsigned>(__builtin_ctz(later ? later : runnable));
    }
    if (worker.order == Order::reverse) {
        unsigned earlier = runnable & ((1u << index) - 1);
        return 31u - static_cast<unsigned>(__builtin_clz(earlier ? earlier : runnable));
    }
    return choose(worker, runnable);
}

// Converts a linear index to coordinates in a box, x fastest.
uint3 place_in(dim3 box, uint64_t linear) {
    return {static_cast<unsigned>(linear % box.x), static_cast<unsigned>(linear / box.x % box.y),
            static_cast<unsigned>(linear / box.x / box.y)};
}

void start_block(Worker& worker, BlockStorage* block, Cluster& cluster, unsigned rank) {
    Grid& grid = *worker.grid;
    block->launch = &grid;
    block->cluster = &cluster;
    block->rank = rank;
    block->index_in_cluster = {0, 0, 0};
    block->index = cluster.index;
    block->linear = cluster.linear;
    if (cluster.size > 1) {
        block->index_in_cluster = place_in(grid.cluster, rank);
        block->index.x = cluster.index.x * grid.cluster.x + block->index_in_cluster.x;
        block->index.y = cluster.index.y * grid.cluster.y + block->index_in_cluster.y;
        block->index.z = cluster.index.z * grid.cluster.z + block->index_in_cluster.z;
        uint64_t rows = block->index.y + static_cast<uint64_t>(grid.grid.y) * block->index.z;
        block->linear = block->index.x + grid.grid.x * rows;
    }
    block->serial = block_serial.next() + 1;
    block->live = block->thread_count;
    block->runnable = block->warp_count == 32 ? ~0u : (1u << block->warp_count) - 1;
    block->spinning = 0;
    block->held = 0;
    block->mbarriers = nullptr;
    block->operations = nullptr;
    block->operation_count = 0;
    for (unsigned w = 0; w < block->warp_count; ++w) {
        Warp& warp = block->warps[w];
        warp.unstarted = warp.existing;
        warp.registers = 0;
        warp.ready = warp.spinning = warp.paused = warp.exited = 0;
        warp.at_collective = warp.at_active_mask = 0;
        warp.owe_cluster_wait = 0;
    }
    poison_shared_memory(*block);

    cluster.blocks[rank] = block;
    cluster.live += block->live;
    block->next = worker.resident;
    worker.resident = block;
    ++worker.resident_count;
    worker.live_threads += block->live;
}

// Starts all blocks of the next cluster.
bool start_next_cluster(Worker& worker) {
    Grid& grid = *worker.grid;
    if (grid.stop.is_raised()) return false;
    bool checked;
    uint64_t number = take_cluster(worker, &checked);
    if (number >= grid.cluster_count || grid.stop.is_raised()) return false;
    Cluster* cluster = nullptr;
    unsigned size = grid.cluster_size;
    for (unsigned rank = 0; rank < size; ++rank) {
        BlockStorage* block = take_storage(worker);
        if (!block) {
            events::Fault fault = {events::FaultKind::out_of_memory,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   "the simulator could not get memory for another thread block",
                                   false};
            record_fault(grid, fault, cudaErrorMemoryAllocation);
            return false;
        }
        if (!cluster) {
            cluster = &block->own_cluster;
            cluster->linear = worker.order == Order::reverse ? grid.cluster_count - 1 - number : number;
            cluster->index = place_in(grid.clusters, cluster->linear);
            cluster->size = size;
            cluster->live = 0;
            cluster->barrier = {};
            cluster->checks = nullptr;
        }
        start_block(worker, block, *cluster, rank);
        block->checked = checked;
    }
    Block* block = cluster->blocks[worker.order == Order::forward   ? 0
                                   : worker.order == Order::reverse ? size - 1
                                                                    : choose_place(worker, size)];
    worker.block = block;
    worker.warp = &block->warps[choose_warp(worker, block->runnable, worker.order == Order::reverse ? 0 : 31)];
    worker.spin_rounds = worker.stalled_rounds = 0;
    if (checked)
        for (unsigned rank = 0; rank < size; ++rank) events::block_begin(*cluster->blocks[rank]);
    return true;
}

// Frees the block's storage: its cluster has ended.
void retire_block(Worker& worker, BlockStorage* block) {
    if (block->mbarriers || block->operations) finish_mbarriers(*block, true);
    finish_wgmma(*block);
    finish_tensor_memory(*block);
    for (const Barrier& barrier : block->barriers)
        if (barrier.arrived) forget_arrivals(*block);
    if (block->checked) events::block_end(*block);
    take_out(worker.resident, block);
    --worker.resident_count;
    worker.blocks_ended = worker.blocks_ended + 1;
    give_storage(worker, block);
}

void end_block(Worker& worker, BlockStorage* block) {
    if (block->checked) events::copies_at_exit(*block);
    Cluster& cluster = *block->cluster;
    if (cluster.live) return;
    // The cluster lies in the storage of its first block.
    for (unsigned rank = cluster.size; rank-- > 0;)
        retire_block(worker, static_cast<BlockStorage*>(cluster.blocks[rank]));
    cluster_ended(worker);
}

// Calls visit(thread) for each spinning thread of the resident blocks, until a call returns false.
template <typename F>
bool each_spinning(const Worker& worker, F visit) {
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        for (unsigned warps = block->spinning; warps; warps &= warps - 1) {
            Warp& warp = block->warps[__builtin_ctz(warps)];
            for (unsigned lanes = warp.spinning; lanes; lanes &= lanes - 1)
                if (!visit(warp.threads[__builtin_ctz(lanes)])) return false;
        }
    }
    return true;
}

// Returns whether all spinning threads wait at mbarriers. Then no other block can help them, because arrivals at an
// mbarrier come from its own cluster.
bool all_wait_at_mbarriers(const Worker& worker) {
    return each_spinning(worker, [](Thread& thread) { return thread.wait == Wait::mbarrier; });
}

// Ends a launch in which every thread of the resident blocks waits.
[[noreturn]] void deadlock(Worker& worker) {
    each_spinning(worker, [](Thread& thread) {
        if (thread.mbarrier) {
            thread.state = State::waiting;
            return true;
        }
        events::sync_error(events::SyncError::mbarrier_not_initialized, *thread.block, &thread, nullptr);
        current_thread = nullptr;
        kill_launch(cudaErrorLaunchFailure);
    });
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        if (block->live == 0) continue;  // the block has ended, but not its cluster
        events::sync_error(events::SyncError::deadlock, *block, nullptr, nullptr);
    }
    current_thread = nullptr;
    kill_launch(cudaErrorLaunchTimeout);
}

// Ends a launch in which all live threads poll memory that none of them changes. Counts rounds, not time: a slow
// machine alone does not cause it.
[[noreturn]] void livelock(Worker& worker) {
    Thread* thread = first_spinning(worker);
    each_spinning(worker, [&thread](Thread& each) {
        if (!each.watched || !events::waits_for_host(each.watched)) return true;
        thread = &each;
        return false;
    });
    events::Fault fault = {events::FaultKind::infinite_loop, thread, nullptr, thread->call_address, nullptr, false};
    name_seen_polling(worker, nullptr, fault);
    record_fault(*worker.grid, fault, cudaErrorLaunchTimeout);
    current_thread = nullptr;
    leave_grid(worker);
}

// Returns the spinning lanes to run. A program may let each lane write its own number to a variable until the lane
// reads this number back. If such lanes alternate, they can overwrite each other's numbers forever. So from time to
// time one lane runs alone for a few turns.
unsigned lanes_to_wake(const Worker& worker, unsigned spinning) {
    if (worker.spin_rounds % 64 < 56) return spinning;
    unsigned skipped = worker.spin_rounds / 64 % static_cast<unsigned>(__builtin_popcount(spinning));
    for (; skipped; --skipped) spinning &= spinning - 1;
    return spinning & (0u - spinning);
}

void stop_spinning(Warp& warp, unsigned lanes) {
    make_ready(warp, lanes);
    warp.spinning &= ~lanes;
    if (!warp.spinning) warp.block->spinning &= ~(1u << warp.index);
}

// Lets another block run where all that can run are held back: a new one if there are few, otherwise the one that was
// held back last. So a tile that was taken early is finished late.
void release_held_block(Worker& worker) {
    worker.held_rounds = 0;  // spinning threads poll several times before the next block is released
    const uint64_t size = worker.grid->cluster_size, most = worker.grid->residency;
    if (worker.resident_count < limits::sms && worker.resident_count + size <= most && start_next_cluster(worker))
        return;
    BlockStorage* last = worker.resident;
    for (BlockStorage* block = last; block; block = block->next)
        if (block->held > last->held) last = block;
    last->held = 0;
    if (++worker.releases < most_releases) return;
    for (BlockStorage* block = worker.resident; block; block = block->next) block->held = 0;
}

// Sets worker.block to a block that can run. Returns false when the grid is done or was stopped.
bool find_runnable_block(Worker& worker) {
    Grid& grid = *worker.grid;
    for (;;) {
        if (grid.stop.is_raised()) return false;
        bool spinning = false, held = false;
        for (BlockStorage* block = worker.resident; block; block = block->next) {
            if (block->held) {
                held = true;
                continue;
            }
            if (block->runnable) {
                worker.block = block;
                worker.warp = &block->warps[choose(worker, block->runnable)];
                return true;
            }
            spinning = spinning || block->spinning != 0;
        }
        if (worker.resident_count == 0) return start_next_cluster(worker);
        if (!spinning && !held) deadlock(worker);
        if (held) {
            if (!spinning || ++worker.held_rounds > spin_patience) {
                release_held_block(worker);
                continue;
            }
        } else if (perform_operations(worker)) {
            // Let the spinning threads poll again.
        } else if (all_wait_at_mbarriers(worker)) {
            if (++worker.stalled_rounds > mbarrier_patience) deadlock(worker);
        } else if (++worker.spin_rounds > spin_patience) {
            in_block_order("its blocks wait for each other");
            if (worker.resident_count + grid.cluster_size <= grid.residency && start_next_cluster(worker)) return true;
            // With several workers, a block of another worker may end the wait. Then only the watchdog detects an
            // endless loop.
            if (++worker.stalled_rounds > settings.spin_rounds && grid.workers == 1) livelock(worker);
            if (grid.workers > 1) let_later_blocks_go();
        }
        for (BlockStorage* block = worker.resident; block; block = block->next) {
            if (block->held) continue;
            for (unsigned warps = block->spinning; warps; warps &= warps - 1) {
                Warp& warp = block->warps[__builtin_ctz(warps)];
                stop_spinning(warp, lanes_to_wake(worker, warp.spinning));
            }
        }
    }
}

// Returns the thread to run next; null when the grid is done or was stopped.
inline Thread* next_thread(Worker& worker) {
    for (;;) {
        Warp* warp = worker.warp;
        Block* block = worker.block;
        unsigned candidates = warp->ready ? warp->ready : warp->unstarted;
        if (__builtin_expect(worker.order == Order::random && block->runnable != 0, false)) {
            warp = worker.warp = &block->warps[choose(worker, block->runnable)];
            candidates = warp->ready | warp->unstarted;
        }
        if (candidates) {
            unsigned lane = choose(worker, candidates);
            unsigned bit = 1u << lane;
            worker.next_is_new = (warp->unstarted & bit) != 0;
            warp->unstarted &= ~bit;
            warp->ready &= ~bit;
            return &warp->threads[lane];
        }
        block->runnable &= ~(1u << warp->index);
        if (warp->paused) {
            make_ready(*warp, warp->paused);
            warp->paused = 0;
        } else if (warp->at_active_mask) {
            resolve_active_mask(*warp);
        } else if (block->runnable) {
            worker.warp = &block->warps[choose_warp(worker, block->runnable, warp->index)];
        } else if (!find_runnable_block(worker)) {
            return nullptr;
        }
    }
}

void exit_thread(Worker& worker, Thread& thread) {
    Block& block = *thread.block;
    Warp& warp = *thread.warp;
    if (block.checked) events::thread_exit(thread);
    if (thread.async_copies) finish_async_copies(thread, true);
    thread.state = State::exited;
    warp.exited |= 1u << thread.lane;
    worker.spin_rounds = worker.stalled_rounds = 0;
    --worker.live_threads;
    --block.cluster->live;
    if (block.cluster->barrier.arrived) complete_cluster_after_exit(thread);
    if (--block.live == 0) {
        current_thread = nullptr;
        end_block(worker, static_cast<BlockStorage*>(&block));
    } else {
        complete_after_exit(block, warp);
        current_thread = nullptr;
    }
}

void run_thread(Worker& worker, Thread& thread) {
    thread.fiber = worker.fiber;
    thread.state = State::running;
    thread.wait = Wait::none;
    thread.call_address = nullptr;
    thread.polled = thread.watched = thread.seen = nullptr;
    thread.stalled = false;
    thread.conditions = 0;
    thread.polling_reads = thread.seen_alike = 0;
    thread.async_copies = nullptr;
    thread.additions = 0;
    current_thread = &thread;
    try {
        worker.grid->body(worker.grid->context);
    } catch (...) {
        raise_fault(events::FaultKind::device_exception, cudaErrorLaunchFailure, nullptr, nullptr,
                    "a C++ exception left the kernel; device code does not support exceptions");
    }
    exit_thread(worker, thread);
}

// The body of every fiber: runs unstarted threads one after another, until a suspended one is to continue.
[[noreturn]] void fiber_entry() {
    Worker& worker = *current_worker;
    Thread* thread = worker.starting;
    for (;;) {
        if (thread) run_thread(worker, *thread);
        thread = next_thread(worker);
        if (!thread) leave_grid(worker);
        if (!worker.next_is_new) {
            // Return the fiber to the pool. Its stack is still in use until the switch below, but no code takes a fiber
            // from the pool before that.
            worker.fibers.give(worker.fiber);
            worker.fiber = thread->fiber;
            current_thread = thread;
            thread->state = State::running;
            void* abandoned;
            sim_switch_context(&abandoned, thread->stack_pointer);
            __builtin_unreachable();
        }
    }
}

}  // namespace

void leave_grid(Worker& worker) {
    void* abandoned;
    sim_switch_context(&abandoned, worker.host_context);
    __builtin_unreachable();
}

void switch_away(Thread& self) {
    Worker& worker = *current_worker;
    Thread* next = next_thread(worker);
    worker.switches = worker.switches + 1;
    if (!next) leave_grid(worker);
    if (next == &self) {
        self.state = State::running;
        return;
    }
    void* to;
    if (worker.next_is_new) {
        Fiber* fiber = worker.fibers.take();
        if (!fiber) {
            current_thread = next;
            raise_fault(events::FaultKind::out_of_memory, cudaErrorMemoryAllocation, nullptr, nullptr,
                        "the simulator could not get memory for the stack of another thread");
        }
        worker.fiber = fiber;
        worker.starting = next;
        to = make_context(fiber->top, fiber_entry);
    } else {
        worker.fiber = next->fiber;
        next->state = State::running;
        current_thread = next;
        to = next->stack_pointer;
    }
    sim_switch_context(&self.stack_pointer, to);
}

unsigned choose_place(Worker& worker, unsigned count) {
    if (worker.order == Order::forward) return 0;
    if (worker.order == Order::reverse) return count - 1;
    return static_cast<unsigned>((next_random(worker) >> 33) % count);
}

void spin(Thread& self) {
    Worker& worker = *current_worker;
    if (worker.grid->stop.is_raised()) leave_grid(worker);
    self.state = State::spinning;
    self.polled = nullptr;
    self.warp->spinning |= 1u << self.lane;
    self.block->spinning |= 1u << self.warp->index;
    switch_away(self);
    // A thread that sleeps between its reads is hardly ever in its own code when the watchdog looks.
    const bool ends_soon = worker.stalled_rounds + sampled_rounds > settings.spin_rounds;
    if (!self.block->checked && is_program() && (ends_soon || worker.samples_polls)) sample_next_access();
}

namespace {

// Returns a thread of another block that polls this address by an atomic operation, or null. If there are several, it is
// in the block with the largest number, in any schedule. It spins, or is about to poll again.
Thread* polling_thread(const Worker& worker, const Thread& self, const void* address) {
    Thread* found = nullptr;
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        if (block == self.block || block->held || (found && block->linear < found->block->linear)) continue;
        for (unsigned w = 0; w < block->warp_count; ++w) {
            Warp& warp = block->warps[w];
            for (unsigned lanes = warp.spinning | warp.ready; lanes; lanes &= lanes - 1) {
                Thread& thread = warp.threads[__builtin_ctz(lanes)];
                const bool polls = thread.state == State::spinning && thread.polls_atomically;
                if (polls && thread.watched == address) found = &thread;
            }
        }
    }
    return found;
}

}  // namespace

void added_to(Thread& self, const void* address) {
    Worker& worker = *current_worker;
    Grid& grid = *worker.grid;
    if (grid.workers > 1 || !can_roll_back(grid) || grid.cluster_count == 1) return;
    if (worker.releases >= most_releases) return;
    constexpr unsigned most = sizeof self.added / sizeof *self.added;
    bool again = false;
    for (unsigned i = 0; i < most && i < self.additions; ++i) again = again || self.added[i] == address;
    if (!again) self.added[self.additions++ % most] = address;
    Thread* polls = worker.resident_count > 1 ? polling_thread(worker, self, address) : nullptr;
    if (!again && !polls) return;
    self.block->held = ++worker.tickets;
    worker.held_rounds = 0;
    make_ready(*self.warp, 1u << self.lane);
    if (polls) {
        stop_spinning(*polls->warp, 1u << polls->lane);
        worker.block = polls->block;
        worker.warp = polls->warp;
    } else if (!find_runnable_block(worker)) {
        leave_grid(worker);
    }
    switch_away(self);
}

void name_seen_polling(const Worker& worker, Thread* running, events::Fault& fault) {
    Thread* found = running && seen_polling(*running) ? running : nullptr;
    if (!found) {
        each_spinning(worker, [&found](Thread& thread) {
            if (!seen_polling(thread)) return true;
            if (!found || thread.block->linear < found->block->linear) found = &thread;
            return true;
        });
    }
    if (!found) return;
    fault.thread = found;
    fault.address = found->call_address = found->seen_from;
    found->watched = found->seen;
}

Thread* first_spinning(const Worker& worker) {
    Thread* first = nullptr;
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        if (first && first->block->linear < block->linear) continue;
        for (unsigned w = 0; w < block->warp_count; ++w) {
            unsigned lanes = block->warps[w].spinning;
            if (!lanes) continue;
            first = &block->warps[w].threads[__builtin_ctz(lanes)];
            break;
        }
    }
    return first;
}

void let_others_run() {
    Thread& self = *current_thread;
    self.warp->paused |= 1u << self.lane;
    switch_away(self);
}

void kill_launch(int cuda_error) {
    in_block_order("one of its blocks ends the launch");
    Worker& worker = *current_worker;
    Grid& grid = *worker.grid;
    if (grid.stop.raise()) grid.error = cuda_error;
    leave_grid(worker);
}

void record_fault(Grid& grid, const events::Fault& fault, int cuda_error) {
    if (!grid.stop.raise()) return;
    // With checks, the launch is rolled back, and the rerun in block order finds the fault again.
    grid.rolled_back = grid.workers > 1 && grid.helped && can_roll_back(grid);
    if (grid.rolled_back) grid.one_worker_reason = "one of its blocks ends the launch";
    grid.fault = fault;
    grid.faulted = true;
    grid.error = cuda_error;
}

void raise_fault(events::FaultKind kind, int cuda_error, const void* data, const void* address, const char* detail) {
    in_block_order("one of its blocks ends the launch");
    Worker& worker = *current_worker;
    record_fault(*worker.grid, {kind, current_thread, data, address, detail, data != nullptr}, cuda_error);
    leave_grid(worker);
}

void run_blocks(Worker& worker, Grid& grid) {
    worker.grid = &grid;
    worker.block = &worker.idle_block;
    worker.warp = &worker.idle_warp;
    worker.resident = nullptr;
    worker.resident_count = 0;
    worker.grid_barrier = {};
    worker.live_threads = 0;
    worker.tickets = 0;
    worker.releases = worker.held_rounds = 0;
    worker.spin_rounds = worker.stalled_rounds = 0;
    worker.starting = nullptr;
    worker.faulted = false;
    current_worker = &worker;
    // A fault handler jumps to `landing`. The argument 1 saves the signal mask, so that the jump restores it: in the
    // handler, the signal is blocked.
    if (sigsetjmp(worker.landing, 1) == 0) {
        bool ready = true;
        // In a cooperative launch all blocks exist before any of them runs.
        while (ready && grid.cooperative && worker.resident_count < grid.block_count)
            ready = start_next_cluster(worker);
        worker.fiber = worker.fibers.take();
        if (worker.fiber && ready) {
            sim_switch_context(&worker.host_context, make_context(worker.fiber->top, fiber_entry));
        } else {
            events::Fault fault = {events::FaultKind::out_of_memory,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   "the simulator could not get memory for the threads of this launch",
                                   false};
            record_fault(grid, fault, cudaErrorMemoryAllocation);
        }
    }
    if (worker.faulted) record_fault_in_order(worker);
    current_thread = nullptr;
    while (worker.resident) {  // blocks are left only if the launch was stopped
        BlockStorage* block = worker.resident;
        worker.resident = block->next;
        for (unsigned i = 0; i < block->thread_count; ++i) {
            if (block->threads[i].async_copies) finish_async_copies(block->threads[i], false);
        }
        if (block->mbarriers || block->operations) finish_mbarriers(*block, false);
        finish_wgmma(*block);
        finish_tensor_memory(*block);
        forget_arrivals(*block);
        give_storage(worker, block);
    }
    worker.fibers.give_all(grid.stop.is_raised());
    worker.block = &worker.idle_block;
    worker.warp = &worker.idle_warp;
    worker.grid = nullptr;
    current_worker = nullptr;
}

}  // namespace sim
