// What synchronisation orders: barriers, __syncwarp, fences and atomic variables.
#include "checks/clusters.h"
#include "checks/members.h"
#include "checks/races.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

// Collects what fences have published, of threads that meet: after the barrier any of them may pass it on.
class ReleaseJoin {
  public:
    ReleaseJoin(Pool& pool, const BlockState& block) : pool_(pool), block_(block), known_(pool, block.serial) {}

    void add(const ThreadState& thread) {
        if (!thread.extras) return;
        const Release* release = thread.extras->released[2];
        if (!release) return;
        ++count_;
        uint32_t time = release->thread == joint ? release->barrier_time : release->time + 1;
        if (time < all_before_) all_before_ = time;
        known_.add(release->known);
        if (release->thread != joint) known_.add_lane(release->thread / 32, release->thread % 32, release->time);
        if (release->barrier_time > barrier_time_) barrier_time_ = release->barrier_time;
        if (release->warp_time > release->barrier_time) {
            for (unsigned lane = 0; lane < lanes_per_warp; ++lane)
                known_.add_lane(release->thread / 32, lane, release->warp_time - 1);
        }
    }

    const Release* finish() {
        if (!count_) return nullptr;
        // When every thread has published, that is as good as a barrier at the time of the earliest one.
        if (count_ == block_.block->thread_count && all_before_ > barrier_time_) barrier_time_ = all_before_;
        Release* release = pool_.take<Release>();
        *release = {block_.serial, block_.time, 0, barrier_time_, joint, Scope::device, known_.finish()};
        return release;
    }

  private:
    static constexpr uint16_t joint = 0xffff;  // of no thread in particular: the rows of `known` say whose
    Pool& pool_;
    const BlockState& block_;
    VectorClockBuilder known_;
    uint32_t barrier_time_ = 0;
    uint32_t all_before_ = ~uint32_t(0);
    unsigned count_ = 0;
};

// Of threads that meet, all know what one has waited for.
class AwaitedJoin {
  public:
    void add(const ThreadState& thread) { any_ = any_ || thread.awaited; }
    void give(ThreadState& thread) const {
        if (!any_ || thread.awaited) return;
        thread.awaited = true;
        set_floors(thread);
    }

  private:
    bool any_ = false;
};

void learn(ThreadState& thread, const VectorClock* known, const Release* released) {
    if (!known && !released && !thread.extras) return;
    ThreadExtras& extras = extras_of(thread);
    extras.known = known;
    extras.acquired = nullptr;
    if (released) extras.released[2] = released;
}

}  // namespace

void add_acquired(VectorClockBuilder& builder, ThreadState& thread) {
    if (!thread.extras) return;
    builder.add(thread.extras->known);
    builder.add(thread.extras->acquired);
}

void become_exact(BlockState& block) {
    if (block.exact) return;
    in_block_order("its threads meet in parts of a block or a warp");
    block.exact = true;
    for (unsigned i = 0; i < block.block->thread_count; ++i) set_time(block.threads[i], block.threads[i].time());
}

void block_joined(BlockState& block) {
    unsigned count = block.block->thread_count;
    AwaitedJoin awaited;
    for (unsigned i = 0; the_launch.overlap_serials && i < count; ++i) awaited.add(block.threads[i]);
    const VectorClock* known = nullptr;
    const Release* released = nullptr;
    Pool& pool = block.worker->pool;
    if (block.extras) {
        VectorClockBuilder builder(pool, block.serial);
        for (unsigned i = 0; i < count; ++i) add_acquired(builder, block.threads[i]);
        known = builder.finish(false);
    }
    if (block.fenced) {
        ReleaseJoin join(pool, block);
        for (unsigned i = 0; i < count; ++i) join.add(block.threads[i]);
        released = join.finish();
        block.fenced = false;
    }
    if (the_launch.exact) block.exact = true;
    block.barrier_time = ++block.time;
    block.barrier_known = known;
    for (unsigned i = 0; i < count; ++i) {
        ThreadState& thread = block.threads[i];
        if (block.extras) learn(thread, known, released);
        set_time(thread, block.time);
        awaited.give(thread);
        set_floors(thread);
    }
    for (unsigned w = 0; w < block.block->warp_count; ++w) block.warps[w].sync_time = block.time;
}

void some_joined(BlockState& block, unsigned barrier) {
    become_exact(block);
    Pool& pool = block.worker->pool;
    VectorClockBuilder builder(pool, block.serial);
    ReleaseJoin join(pool, block);
    builder.add(block.arrivals[barrier]);
    block.arrivals[barrier] = nullptr;
    auto each_waiting = [&](auto visit) {
        for (unsigned w = 0; w < block.block->warp_count; ++w) {
            unsigned lanes = block.block->warps[w].at_barrier[barrier].waiting;
            for (; lanes; lanes &= lanes - 1)
                visit(w, block.threads[w * lanes_per_warp + static_cast<unsigned>(__builtin_ctz(lanes))]);
        }
    };
    AwaitedJoin awaited;
    each_waiting([&](unsigned warp, ThreadState& thread) {
        awaited.add(thread);
        add_acquired(builder, thread);
        builder.add_lane(warp, thread.lane, thread.time());
        join.add(thread);
    });
    const VectorClock* known = builder.finish();
    const Release* released = join.finish();
    ++block.time;
    each_waiting([&](unsigned, ThreadState& thread) {
        learn(thread, known, released);
        set_time(thread, block.time);
        awaited.give(thread);
    });
}

void arrived(ThreadState& thread, unsigned barrier) {
    BlockState& block = *thread.block;
    become_exact(block);
    VectorClockBuilder builder(block.worker->pool, block.serial);
    builder.add(block.arrivals[barrier]);
    if (thread.extras) builder.add(thread.extras->known);
    builder.add_lane(thread.warp->warp->index, thread.lane, thread.time());
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
    const VectorClock* known = nullptr;
    const Release* released = nullptr;
    if (!whole || block.extras) {
        Pool& pool = block.worker->pool;
        VectorClockBuilder builder(pool, block.serial);
        ReleaseJoin join(pool, block);
        each([&](ThreadState& thread) {
            add_acquired(builder, thread);
            if (!whole) builder.add_lane(warp.warp->index, thread.lane, thread.time());
            if (block.fenced) join.add(thread);
        });
        known = builder.finish();
        released = join.finish();
    }
    AwaitedJoin awaited;
    if (the_launch.overlap_serials) each([&](ThreadState& thread) { awaited.add(thread); });
    ++block.time;
    if (whole) warp.sync_time = block.time;
    each([&](ThreadState& thread) {
        awaited.give(thread);
        if (!whole || block.extras) learn(thread, known, released);
        set_time(thread, block.time);
    });
}

void grid_joined() {
    bool all_before = the_launch.open_serial == the_launch.first_serial;
    the_launch.first_serial += the_launch.blocks;
    if (all_before) the_launch.open_serial = the_launch.first_serial;
    each_worker([](WorkerState& worker) {
        for (BlockState* block : worker.blocks) {
            block->serial += the_launch.blocks;
            block->barrier_time = ++block->time;
            forget_cluster(*block->block->cluster);
            block->fenced = false;
            block->barrier_known = nullptr;
            for (WarpState& warp : block->warps) warp.sync_time = block->time;
            for (unsigned i = 0; i < block->block->thread_count; ++i) {
                ThreadState& thread = block->threads[i];
                if (thread.extras) {
                    thread.extras->known = thread.extras->acquired = nullptr;
                    for (const Release*& release : thread.extras->released) release = nullptr;
                }
                thread.epoch = Epoch(block->serial, 0, thread.thread->linear);
                set_time(thread, block->time);
                set_floors(thread);
            }
        }
    });
}

void fenced(ThreadState& thread, Scope scope) {
    BlockState& block = *thread.block;
    unsigned reach = scope < Scope::device ? static_cast<unsigned>(scope) : 2;
    if (scope != Scope::block) the_launch.exact = true;
    become_exact(block);
    ThreadExtras& extras = extras_of(thread);
    if (extras.acquired) {
        VectorClockBuilder builder(block.worker->pool, block.serial);
        add_acquired(builder, thread);
        extras.known = builder.finish();
        extras.acquired = nullptr;
    }
    Release* release = block.worker->pool.take<Release>();
    *release = release_of(thread, thread.time());
    release->scope = scope;
    for (unsigned nearer = 0; nearer < reach; ++nearer) extras.released[nearer] = nullptr;
    extras.released[reach] = release;
    block.fenced = true;
    // What comes after the fence is not published by it.
    set_time(thread, ++block.time);
}

void acquire(ThreadState& thread, const void* variable) {
    Locked locked(the_launch.lock);
    SyncLog** log = the_launch.logs.find(reinterpret_cast<uint64_t>(variable));
    if (!log) return;
    ThreadExtras& extras = extras_of(thread);
    auto has = [&](const VectorClock* known) {
        for (uint32_t i = 0; known && i < known->log_count; ++i)
            if (known->logs[i].log == *log && known->logs[i].length >= (*log)->length()) return true;
        return false;
    };
    if (has(extras.known) || has(extras.acquired)) return;
    VectorClockBuilder builder(thread.worker->pool, thread.block->serial);
    builder.add(extras.acquired);
    builder.add_log(*log, (*log)->length());
    extras.acquired = builder.finish();
}

Release release_of(const ThreadState& thread, uint32_t time) {
    const VectorClock* known = thread.extras ? thread.extras->known : nullptr;
    return {thread.block->serial, time, thread.warp->sync_time, thread.barrier_time, thread.thread->linear,
            Scope::device,        known};
}

SyncLog& new_log(const void* variable) {
    SyncLog*& log = the_launch.logs.at(reinterpret_cast<uint64_t>(variable));
    if (!log) {
        log = static_cast<SyncLog*>(calloc(1, sizeof(SyncLog)));
        if (!log) abort();
    }
    return *log;
}

void release(ThreadState& thread, const void* variable) {
    if (!thread.extras) return;
    const Release* const* released = thread.extras->released;
    if (!released[0] && !released[1] && !released[2]) return;
    Locked locked(the_launch.lock);
    SyncLog* log = &new_log(variable);
    for (unsigned reach = 3; reach-- > 0;)
        if (released[reach]) log->append(released[reach], thread.thread->linear, thread.time());
}

const SyncLog* log_of(const void* variable) {
    Locked locked(the_launch.lock);
    SyncLog** log = the_launch.logs.find(reinterpret_cast<uint64_t>(variable));
    return log ? *log : nullptr;
}

void forget_order() {
    the_launch.logs.each([](uint64_t, SyncLog*& log) {
        log->~SyncLog();
        free(log);
    });
    the_launch.logs.clear();
}

}  // namespace sim::checks
