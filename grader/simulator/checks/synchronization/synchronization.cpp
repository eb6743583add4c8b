// The order that synchronization creates: by barriers, __syncwarp, fences and atomic variables.
#include "checks/synchronization/clusters.h"
#include "checks/synchronization/races.h"
#include "checks/synchronization/volatiles.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

void add_time(VectorClockBuilder& builder, const ThreadState& thread) {
    builder.add_lane(thread.warp->warp->index, thread.lane, thread.time());
}

// Joins the releases by fences of the threads at a barrier. After the barrier, an atomic store by any of these threads
// publishes the joined release.
class ReleaseJoin {
  public:
    explicit ReleaseJoin(BlockState& block) : block_(block), known_(block.worker->pool, block.serial) {}

    void add(const ThreadState& thread) {
        if (!thread.extras) return;
        const Release* release = thread.extras->released[2];
        if (!release) return;
        ++count_;
        if (release->time < earliest_) earliest_ = release->time;
        known_.add(release->known);
        known_.add_lane(release->thread / 32, release->thread % 32, release->time);
        if (release->barrier_time > barrier_time_) barrier_time_ = release->barrier_time;
        if (release->warp_time > release->barrier_time) {
            for (unsigned lane = 0; lane < lanes_per_warp; ++lane)
                known_.add_lane(release->thread / 32, lane, release->warp_time - 1);
        }
    }

    const Release* finish() {
        if (!count_) return nullptr;
        // If every thread has executed a fence, the release includes all accesses of the block before the earliest
        // fence. This is the same as for a barrier of the block, so it needs only a time.
        if (count_ == block_.block->thread_count && earliest_ >= barrier_time_) barrier_time_ = earliest_ + 1;
        Release* release = block_.worker->pool.take<Release>();
        // The release belongs to no single thread, so its thread and times are empty. Its vector clock contains the
        // times of all threads, one row per warp.
        *release = {block_.serial, {}, {}, barrier_time_, {}, Scope::device, known_.finish()};
        return release;
    }

  private:
    BlockState& block_;
    VectorClockBuilder known_;
    uint32_t barrier_time_ = 0;
    uint32_t earliest_ = Epoch::time_pending;
    unsigned count_ = 0;
};

// A set of threads that synchronize. Whatever one of them knows, has published or has waited for holds for all of them
// afterwards. But a barrier is no fence of device scope: to acquire what atomic reads observed from other blocks, one
// of the threads must still execute a fence.
class SyncScope {
  public:
    explicit SyncScope(BlockState& block)
        : known(block.worker->pool, block.serial),
          block_(block),
          acquired_(block.worker->pool, block.serial),
          releases_(block) {}

    void add(ThreadState& thread) {
        add_acquired(known, thread, Scope::block);
        if (thread.extras) acquired_.add_wider_logs(thread.extras->acquired, Scope::block);
        if (block_.fenced) releases_.add(thread);
        awaited_ = awaited_ || thread.awaited;
    }
    const VectorClock* finish(bool keep_rows = true) {
        released_ = releases_.finish();
        pending_ = acquired_.finish();
        ++block_.time;
        return learnt_ = known.finish(keep_rows);
    }
    void leave(ThreadState& thread) const {
        if (thread.extras || learnt_ || pending_ || released_) {
            ThreadExtras& extras = extras_of(thread);
            extras.known = learnt_;
            extras.acquired = pending_;
            if (released_) extras.released[2] = released_;
        }
        set_time(thread, block_.time);
        if (awaited_) {
            thread.awaited = true;
            set_floors(thread);
        }
    }

    VectorClockBuilder known;

  private:
    BlockState& block_;
    VectorClockBuilder acquired_;
    ReleaseJoin releases_;
    bool awaited_ = false;
    const VectorClock* learnt_ = nullptr;
    const VectorClock* pending_ = nullptr;
    const Release* released_ = nullptr;
};

template <typename F>
void each_thread(BlockState& block, F visit) {
    for (unsigned i = 0; i < block.block->thread_count; ++i) visit(block.threads[i]);
}

}  // namespace

void add_acquired(VectorClockBuilder& builder, const ThreadState& thread, Scope scope) {
    if (!thread.extras) return;
    builder.add(thread.extras->known);
    builder.add_logs(thread.extras->acquired, scope);
}

void keep_acquired(ThreadState& thread, Scope scope) {
    ThreadExtras& extras = *thread.extras;
    if (!extras.acquired) return;
    VectorClockBuilder builder(thread.worker->pool, thread.block->serial);
    builder.add_wider_logs(extras.acquired, scope);
    extras.acquired = builder.finish();
}

void become_exact(BlockState& block) {
    if (block.exact) return;
    if (!the_launch.launch->partly_checked) in_block_order("its threads meet in parts of a block or a warp");
    block.exact = true;
    each_thread(block, [](ThreadState& thread) { set_time(thread, thread.time()); });
}

void block_joined(BlockState& block) {
    SyncScope scope(block);
    each_thread(block, [&](ThreadState& thread) { scope.add(thread); });
    block.barrier_known = scope.finish(false);
    block.fenced = false;
    if (the_launch.exact) block.exact = true;
    block.barrier_time = block.time;
    each_thread(block, [&](ThreadState& thread) {
        scope.leave(thread);
        set_floors(thread);
    });
}

void some_joined(BlockState& block, unsigned barrier) {
    become_exact(block);
    auto each_waiting = [&](auto visit) {
        for (unsigned w = 0; w < block.block->warp_count; ++w) {
            unsigned lanes = block.block->warps[w].at_barrier[barrier].waiting;
            for (; lanes; lanes &= lanes - 1)
                visit(block.threads[w * lanes_per_warp + static_cast<unsigned>(__builtin_ctz(lanes))]);
        }
    };
    SyncScope scope(block);
    scope.known.add(block.arrivals[barrier]);
    block.arrivals[barrier] = nullptr;
    each_waiting([&](ThreadState& thread) {
        scope.add(thread);
        add_time(scope.known, thread);
    });
    scope.finish();
    each_waiting([&](ThreadState& thread) { scope.leave(thread); });
}

void arrived(ThreadState& thread, unsigned barrier) {
    BlockState& block = *thread.block;
    become_exact(block);
    VectorClockBuilder builder(block.worker->pool, block.serial);
    builder.add(block.arrivals[barrier]);
    if (thread.extras) builder.add(thread.extras->known);
    add_time(builder, thread);
    block.arrivals[barrier] = builder.finish();
    set_time(thread, ++block.time);
}

void warp_joined(WarpState& warp, unsigned participants) {
    BlockState& block = *warp.block;
    bool whole = participants == warp.warp->existing;
    if (!whole) become_exact(block);
    ThreadState* first = block.threads + warp.warp->index * lanes_per_warp;
    auto each = [&](auto visit) {
        for (unsigned rest = participants; rest; rest &= rest - 1) visit(first[__builtin_ctz(rest)]);
    };
    SyncScope scope(block);
    each([&](ThreadState& thread) {
        scope.add(thread);
        if (!whole) add_time(scope.known, thread);
    });
    scope.finish();
    if (whole) warp.sync_time = block.time;
    each([&](ThreadState& thread) { scope.leave(thread); });
}

void grid_joined() {
    bool all_before = the_launch.open_serial == the_launch.first_serial;
    the_launch.blocks_joined = true;
    the_launch.first_serial += the_launch.blocks;
    if (all_before) the_launch.open_serial = the_launch.first_serial;
    each_worker([](WorkerState& worker) {
        for (BlockState* block : worker.blocks) {
            block->serial += the_launch.blocks;
            block->barrier_time = ++block->time;
            forget_cluster(*block->block->cluster);
            each_thread(*block, [&](ThreadState& thread) {
                thread.epoch = Epoch(block->serial, {}, thread.thread->linear);
                set_time(thread, block->time);
                set_floors(thread);
            });
        }
    });
}

namespace {

// Returns the narrowest scope that includes, for this thread, the same threads as `scope`.
Scope reach_of(const ThreadState& thread, Scope scope) {
    if (scope == Scope::cluster && thread.block->cluster_size == 1) return Scope::block;
    return scope == Scope::system ? Scope::device : scope;
}

// Called at a fence or release. From now on, reader sets list every member, because the fence can order accesses of
// single threads.
void order_one_by_one(BlockState& block, Scope scope) {
    if (scope != Scope::block) the_launch.exact = true;
    become_exact(block);
}

const Release* new_release(ThreadState& thread, Scope scope) {
    BlockState& block = *thread.block;
    Release* release = block.worker->pool.take<Release>();
    *release = release_of(thread, thread.time());
    release->scope = scope;
    // Give the thread a new time, so that its later accesses are not part of this release.
    set_time(thread, ++block.time);
    return release;
}

// Begins a new log for an atomic store. The log begins with this thread's own earlier releases through the variable.
void begin_log(const ThreadState& thread, const void* variable) {
    SyncLog** known = the_launch.logs.find(reinterpret_cast<uint64_t>(variable));
    if (!known || !*known || !(*known)->length()) return;
    SyncLog* before = *known;
    *known = nullptr;
    SyncLog* log = new SyncLog(variable);
    log->append_own(*before, thread.block->serial, thread.thread->linear);
    if (!log->length()) return delete log;
    the_launch.every_log.push(log);
    *known = log;
}

}  // namespace

void fenced(ThreadState& thread, Scope scope, MemoryOrder order) {
    BlockState& block = *thread.block;
    scope = reach_of(thread, scope);
    order_one_by_one(block, scope);
    note_fence(thread);
    ThreadExtras& extras = extras_of(thread);
    if (acquires(order) && extras.acquired) {
        VectorClockBuilder builder(block.worker->pool, block.serial);
        add_acquired(builder, thread, scope);
        extras.known = builder.finish();
        keep_acquired(thread, scope);
    }
    if (!releases(order)) return;
    auto reach = static_cast<unsigned>(scope);
    for (unsigned nearer = 0; nearer < reach; ++nearer) extras.released[nearer] = nullptr;
    extras.released[reach] = new_release(thread, scope);
    block.fenced = true;
}

void acquire(ThreadState& thread, const void* variable, Scope scope, bool in_effect) {
    note_heard_others(*thread.block, variable);
    scope = reach_of(thread, scope);
    if (in_effect) order_one_by_one(*thread.block, scope);
    Locked locked(the_launch.lock);
    SyncLog** log = the_launch.logs.find(reinterpret_cast<uint64_t>(variable));
    if (!log || !*log) return;
    ThreadExtras& extras = extras_of(thread);
    auto has = [&](const VectorClock* known) {
        for (uint32_t i = 0; known && i < known->log_count; ++i) {
            const LogPrefix& prefix = known->logs[i];
            if (prefix.log == *log && prefix.length >= (*log)->length() && prefix.scope >= scope) return true;
        }
        return false;
    };
    if (has(extras.known) || (!in_effect && has(extras.acquired))) return;
    const VectorClock*& known = in_effect ? extras.known : extras.acquired;
    VectorClockBuilder builder(thread.worker->pool, thread.block->serial);
    builder.add(known);
    builder.add_log(*log, (*log)->length(), scope);
    known = builder.finish();
}

Release release_of(const ThreadState& thread, uint32_t time) {
    const VectorClock* known = thread.extras ? thread.extras->known : nullptr;
    return {thread.block->serial, time, thread.warp->sync_time, thread.barrier_time, thread.thread->linear,
            Scope::device,        known};
}

SyncLog& new_log(const void* variable) {
    SyncLog*& log = the_launch.logs.at(reinterpret_cast<uint64_t>(variable));
    if (!log) the_launch.every_log.push(log = new SyncLog(variable));
    return *log;
}

void release(ThreadState& thread, const void* variable, Scope scope, MemoryOrder order, bool begins) {
    scope = reach_of(thread, scope);
    if (releases(order)) order_one_by_one(*thread.block, scope);
    Locked locked(the_launch.lock);
    if (begins) begin_log(thread, variable);
    unsigned number = thread.thread->linear;
    uint32_t time = thread.time();
    if (releases(order)) new_log(variable).append(new_release(thread, scope), scope, number, time);
    if (!thread.extras) return;
    for (const Release* released : thread.extras->released)
        if (released) new_log(variable).append(released, scope, number, time);
}

const SyncLog* log_of(const void* variable) {
    Locked locked(the_launch.lock);
    SyncLog** log = the_launch.logs.find(reinterpret_cast<uint64_t>(variable));
    return log ? *log : nullptr;
}

void forget_order() {
    for (SyncLog* log : the_launch.every_log) delete log;
    the_launch.every_log.clear();
    the_launch.logs.clear();
}

}  // namespace sim::checks
