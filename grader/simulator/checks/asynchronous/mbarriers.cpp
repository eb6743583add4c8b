#include "checks/asynchronous/mbarriers.h"

#include "checks/core/access.h"
#include "checks/counting/counting.h"
#include "checks/synchronization/clusters.h"
#include "checks/report/findings.h"
#include "checks/synchronization/races.h"
#include "checks/report/recording.h"
#include "checks/asynchronous/tensor_memory.h"
#include "runtime/async_operations.h"
#include "runtime/events.h"

namespace sim::checks {

namespace {

// A write by an asynchronous operation that will arrive at an mbarrier. Its shadow cells hold the epoch `pending` until
// the phase is complete and a thread has waited for it, then `arrived`.
struct Written {
    uintptr_t address;
    uint32_t bytes;
    Epoch pending;
    Epoch arrived;  // the epoch of the cells once a thread has waited
    uint64_t number;
    const void* code;  // return address of a bulk copy's call; null for cp.async
    const ThreadState* by;
    const void* from;           // source of the copy if it is in shared memory, else null
    bool is_done, is_complete;  // the operation has finished; its mbarrier phase is complete
    uint32_t foreign_reads;     // of the block, when the copy began
};

// An execution of tcgen05.commit. `number` is greater than the numbers of all operations that the commit covers.
struct Commit {
    const ThreadState* by;
    uint64_t number;
    bool is_done, is_complete;  // the arrival has happened; its mbarrier phase is complete
};

// The state that the checks keep for an mbarrier.
class Phases {
  public:
    Phases(const Mbarrier& barrier, BlockState& block)
        : object_(barrier.object), block_(&block), serial_(block.serial), arriving_(block.worker->pool, block.serial) {}

    void add(const ThreadState& thread) {
        awaited_arriving_ = awaited_arriving_ || thread.awaited;
        if (thread.block != block_) return add_remote(release_of(thread, thread.time()));
        if (thread.extras) arriving_.add(thread.extras->known);
        // The accesses of a warp's lanes before its last synchronization are ordered by `sync_time` alone. They are in
        // no vector clock, so add them here.
        const WarpState& warp = *thread.warp;
        for (unsigned lane = 0; lane < lanes_per_warp && warp.sync_time > thread.barrier_time; ++lane)
            arriving_.add_lane(warp.warp->index, lane, warp.sync_time - 1);
        add_time(thread, thread.time());
    }
    void add_time(const ThreadState& thread, uint32_t time) {
        if (thread.block != block_)
            return add_remote({thread.block->serial, time, 0, 0, thread.thread->linear, Scope::cluster, nullptr});
        arriving_.add_lane(thread.warp->warp->index, thread.lane, time);
    }
    void write(const Written& written) { written_.push(written); }
    void take_copies(const Phases& before) {
        for (const Written& written : before.written_) written_.push(written);
    }
    void commit(const Commit& commit) { commits_.push(commit); }

    void done(const ThreadState& thread, uint64_t number) {
        for (Commit& commit : commits_) commit.is_done = commit.is_done || commit.number == number;
        for (Written& written : written_) {
            if (written.number != number) continue;
            written.is_done = true;
            if (written.foreign_reads != written.by->block->foreign_reads)
                add_to(run_counters.early_bytes, written.bytes);
            add_time(thread, written.arrived.time());
        }
    }

    void complete() {
        complete_ = arriving_.finish();
        awaited_ = awaited_arriving_;
        for (Written& written : written_) written.is_complete = written.is_complete || written.is_done;
        for (Commit& commit : commits_) commit.is_complete = commit.is_done;
        // A thread's last completed commit covers its earlier ones, so remove those.
        for (size_t i = commits_.size(); i-- > 0;) {
            bool later = false;
            for (size_t k = i + 1; k < commits_.size(); ++k)
                later = later || (commits_[k].is_complete && commits_[k].by == commits_[i].by);
            if (later && commits_[i].is_complete) commits_.remove(i);
        }
    }

    void show_commits(ThreadState& waits) {
        for (const Commit& commit : commits_)
            if (commit.is_complete) note_awaited(waits, *commit.by, commit.number);
    }

    // Returns what a thread knows after its wait. Threads with the same knowledge get the same result.
    const VectorClock* learned(ThreadState& thread) {
        const VectorClock* known = thread.extras ? thread.extras->known : nullptr;
        if (!complete_) return known;
        if (!known) return complete_;
        if (asked_with_ == complete_ && known == answer_) return known;
        if (asked_with_ != complete_ || asked_ != known) {
            VectorClockBuilder builder(thread.worker->pool, serial_);
            builder.add(known);
            builder.add(complete_);
            asked_ = known;
            asked_with_ = complete_;
            answer_ = builder.finish();
        }
        return answer_;
    }

    bool awaited() const { return awaited_; }

    void replace_write(const Written& written, Epoch epoch) {
        // With a CTA pair, the write may be in the other block's shared memory. A cp.async has the address 0.
        BlockState* owner = owner_of_shared(*block_, written.address);
        each_cell(find_shared(owner ? *owner : *block_, written.address), written.address, written.bytes,
                  [&](ShadowCell& cell) {
                      if (cell.write == written.pending) cell.write = epoch;
                  });
    }

    void keep_pending() {
        for (Written& written : written_) {
            const Epoch pending = written.by->epoch.with_time(Epoch::time_pending);
            replace_write(written, pending);
            written.pending = pending;
            // The grid barrier does not order the arrival, so the arrival's epoch must not precede the barrier.
            const uint32_t time = written.by->block->barrier_time;
            written.arrived = written.by->epoch.with_time(time).with_atomic(written.arrived.atomic());
        }
    }

    void show_what_arrived() {
        written_.keep([this](const Written& written) {
            if (written.is_complete) replace_write(written, written.arrived);
            return !written.is_complete;
        });
    }

    // Calls visit(thread, code, source in shared memory) for the bulk copies that no thread has waited for.
    template <typename F>
    void each_unawaited(F visit) {
        for (const Written& written : written_)
            if (written.code) visit(*written.by, written.code, written.from);
    }

    uint32_t serial() const { return serial_; }

  private:
    // Adds an arrival by a thread of another block of the cluster. A vector clock holds the times of one block only, so
    // the thread's release is kept in a log.
    void add_remote(const Release& release) {
        SyncLog& log = new_log(object_);
        Release* kept = block_->worker->pool.take<Release>();
        *kept = release;
        log.append(kept, Scope::cluster, release.thread, release.time);
        arriving_.add_log(&log, log.length(), Scope::cluster);
    }

    // True if a thread that arrived at the mbarrier had executed griddepcontrol.wait: in the last completed phase, in
    // the current phase.
    bool awaited_ = false, awaited_arriving_ = false;
    const void* object_;
    BlockState* block_;
    uint32_t serial_;
    VectorClockBuilder arriving_;            // accesses released by arrivals in this phase and earlier ones
    const VectorClock* complete_ = nullptr;  // accesses released by arrivals in completed phases
    // Cache of learned(): `asked_` combined with `asked_with_` gives `answer_`.
    const VectorClock* asked_ = nullptr;
    const VectorClock* asked_with_ = nullptr;
    const VectorClock* answer_ = nullptr;
    Growable<Written> written_;
    Growable<Commit> commits_;
};

Phases& phases_of(Mbarrier& barrier) {
    BlockState& block = *state_of(*barrier.block);
    auto* phases = static_cast<Phases*>(barrier.checks);
    if (phases && phases->serial() == block.serial) return *phases;
    auto* fresh = new Phases(barrier, block);
    if (phases) {  // a grid barrier orders everything before it, but waits for no copy
        fresh->take_copies(*phases);
        delete phases;
    }
    barrier.checks = fresh;
    return *fresh;
}

// The mbarrier object itself: initialization is a write, every other operation is atomic.
void access_object(ThreadState& thread, const Mbarrier& barrier, Access access, const void* code) {
    if (thread.pending) settle(thread, 0, nullptr);
    uintptr_t address = reinterpret_cast<uintptr_t>(barrier.object);
    AccessSite* site = prepare(thread, thread.worker->sites.find(code), address, access, 3);
    if (!site || !site->cells) return;
    each_cell(*site, address, 3, [&](ShadowCell& cell) {
        if (access == Access::write)
            write_cell(thread, cell, *site, address);
        else
            atomic_cell(thread, cell, *site, {false});
    });
}

const BulkState* bulk_of(const ThreadState& thread) { return thread.extras ? thread.extras->bulk : nullptr; }

}  // namespace

void keep_copies_pending(BlockState& block) {
    for (unsigned i = 0; i < block.block->thread_count; ++i) {
        ThreadState& thread = block.threads[i];
        keep_stores_pending(thread);
        if (!thread.extras || !thread.extras->copies) continue;
        const Epoch pending = thread.epoch.with_time(Epoch::time_pending);
        for (AsyncCopy& copy : *thread.extras->copies) {
            each_cell(find_shared(block, copy.shared), copy.shared, copy.bytes, [&](ShadowCell& cell) {
                if (cell.write == copy.pending) cell.write = pending;
            });
            copy.pending = pending;
        }
    }
    for (Mbarrier* barrier = block.block->mbarriers; barrier; barrier = barrier->next)
        if (barrier->checks) static_cast<Phases*>(barrier->checks)->keep_pending();
    if (!block.block->mbarriers) return;
    // Arrivals have the time of the grid barrier, so give later accesses of the threads another time.
    ++block.time;
    for (unsigned i = 0; i < block.block->thread_count; ++i) set_time(block.threads[i], block.time);
}

bool seen_by_bulk_copies(const ThreadState& thread, Epoch write) {
    const BlockState& block = *thread.block;
    // the copy engine or an earlier block did the write
    if (write.atomic() || write.serial() != block.serial) return true;
    uint32_t time = write.time();
    unsigned number = write.thread();
    // First possibility: the writing thread executed a fence after the write, and this thread is ordered after that
    // fence. The earliest such fence decides.
    if (const BulkState* bulk = bulk_of(block.threads[number])) {
        size_t later = bulk->fences.size();
        while (later > 0 && bulk->fences[later - 1].time >= time) --later;
        bool fenced = later < bulk->fences.size();
        if (fenced && ordered(thread, Epoch(block.serial, bulk->fences[later].time, number))) return true;
    }
    // Second possibility: this thread executed a fence while it was ordered after the write.
    const BulkState* bulk = bulk_of(thread);
    if (!bulk || bulk->fences.empty()) return false;
    const ProxyFence& last = bulk->fences[bulk->fences.size() - 1];
    if (time < last.barrier_time) return true;
    if (number / lanes_per_warp == thread.warp->warp->index && time < last.warp_time) return true;
    return covers(last.known, block.serial, number, time);
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

void mbarrier_begin(Thread& thread, Mbarrier& barrier, const void* address) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::write, address);
    if (is_recorded(*thread.block)) record(thread, EventKind::mbarrier_init, address, barrier.object, 8);
    become_exact(*state.block);
}

void mbarrier_end(Thread* thread, Mbarrier& barrier, const void* address) {
    if (thread) access_object(*state_of(*thread), barrier, Access::write, address);
    delete static_cast<Phases*>(barrier.checks);
    barrier.checks = nullptr;
}

void mbarrier_arrive(Thread& thread, Mbarrier& barrier, bool releases, const void* address) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::atomic, address);
    if (is_recorded(*thread.block)) record(thread, EventKind::mbarrier_arrive, address, barrier.object, 8);
    if (!releases) return;
    phases_of(barrier).add(state);
    // Give the thread a new time, so that its later accesses are not part of the release by this arrival.
    set_time(state, ++state.block->time);
}

void mbarrier_complete(Mbarrier& barrier) {
    if (is_recorded(*barrier.block))
        record(*barrier.block->threads, EventKind::mbarrier_phase_complete, nullptr, barrier.object, 8);
    phases_of(barrier).complete();
}

void mbarrier_waits(Thread& thread, const Mbarrier& barrier) {
    if (is_recorded(*thread.block)) record(thread, EventKind::mbarrier_wait, thread.call_address, barrier.object, 8);
}

void mbarrier_waited(Thread& thread, Mbarrier& barrier, bool acquires) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::atomic, thread.call_address);
    if (is_recorded(*thread.block))
        record(thread, EventKind::mbarrier_wait_done, thread.call_address, barrier.object, 8);
    Phases& phases = phases_of(barrier);
    phases.show_commits(state);  // tcgen05.fence orders the commits, whether or not this wait acquires
    if (!acquires) return;
    if (const VectorClock* known = phases.learned(state)) extras_of(state).known = known;
    if (phases.awaited() && !state.awaited) {
        state.awaited = true;
        set_floors(state);
    }
    phases.show_what_arrived();
}

void mbarrier_operation_done(Thread& thread, Mbarrier& barrier, uint64_t number) {
    ThreadState& state = *state_of(thread);
    if (is_recorded(*thread.block)) record_arrival(thread, number);
    phases_of(barrier).done(state, number);
    if (!state.extras || !state.extras->copies) return;
    state.extras->copies->keep([number](const AsyncCopy& copy) { return copy.operation != number; });
}

void async_arrive(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::atomic, address);
    if (is_recorded(*thread.block)) record(thread, EventKind::mbarrier_arrive, address, barrier.object, 8);
    Phases& phases = phases_of(barrier);
    Epoch pending = state.epoch.with_time(Epoch::time_pending);
    phases.write({0, 0, pending, state.epoch, number, nullptr, &state, nullptr, false, false, 0});
    if (state.extras && state.extras->copies) {
        for (AsyncCopy& copy : *state.extras->copies) {
            if (copy.operation) continue;
            copy.operation = number;
            if (is_recorded(*thread.block)) note_copy(number, copy.shared, copy.bytes);
            phases.write({copy.shared, copy.bytes, copy.pending, state.epoch, number, nullptr, &state, nullptr, false,
                          false, copy.foreign_reads});
        }
    }
    set_time(state, ++state.block->time);
}

void tensor_committed(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::atomic, address);
    become_exact(*state.block);
    phases_of(barrier).commit({&state, number, false, false});
}

void copies_at_exit(Block& block) {
    BlockState& state = *state_of(block);
    tensor_memory_at_exit(block);
    check_remote(state);
    if (!state.extras && !block.mbarriers && block.cluster->size == 1) return;
    auto report = [&](const ThreadState& thread, const void* code, const void* = nullptr) {
        add_finding(finding_at(FindingKind::copy_at_exit, thread, code));
    };
    for (unsigned i = 0; i < block.thread_count; ++i) {
        ThreadExtras* extras = state.threads[i].extras;
        if (!extras || !extras->bulk) continue;
        const BulkState& bulk = *extras->bulk;
        for (size_t k = bulk.read; k < bulk.stores.size(); ++k) report(state.threads[i], bulk.stores[k].code);
    }
    for (Mbarrier* barrier = block.mbarriers; barrier; barrier = barrier->next)
        if (barrier->checks) static_cast<Phases*>(barrier->checks)->each_unawaited(report);
    // Copies to another block's shared memory whose source is in this block.
    const Cluster& cluster = *block.cluster;
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        if (cluster.blocks[rank] == &block) continue;
        for (Mbarrier* barrier = cluster.blocks[rank]->mbarriers; barrier; barrier = barrier->next) {
            if (!barrier->checks) continue;
            static_cast<Phases*>(barrier->checks)
                ->each_unawaited([&](const ThreadState& thread, const void* code, const void* from) {
                    if (from && is_shared_of(block, from)) report(thread, code);
                });
        }
    }
}

void bulk_load(Thread& thread, const BulkCopy& copy, bool reads, Mbarrier& barrier, uint64_t number,
               const void* address) {
    ThreadState& state = *state_of(thread);
    access_object(state, barrier, Access::atomic, address);
    become_exact(*state.block);
    if (is_recorded(*thread.block)) record_bulk(thread, copy, true, reads, number, address);
    Epoch pending = bulk_copy(state, copy, reads, address);
    Phases& phases = phases_of(barrier);
    bool from_shared = reads && in_shared(*state.block, reinterpret_cast<uintptr_t>(copy.map.address));
    phases.write({reinterpret_cast<uintptr_t>(copy.shared), copy.bytes(), pending, state.epoch.with_atomic(true),
                  number, address, &state, from_shared ? copy.map.address : nullptr, false, false,
                  state.block->foreign_reads});
    set_time(state, ++state.block->time);
}

}  // namespace sim::events
