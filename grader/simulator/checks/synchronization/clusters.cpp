#include "checks/synchronization/clusters.h"

#include <new>

#include "checks/report/findings.h"
#include "checks/synchronization/races.h"

namespace sim::checks {

namespace {

void raise(uint32_t& latest, uint32_t time) {
    if (latest < time) latest = time;
}

void report_ended(const ThreadState& someone, uint32_t serial, unsigned thread, const RemoteAccess& access,
                  BlockState& owner) {
    Finding finding = finding_at(FindingKind::ended_block, someone, site_address(access.site));
    finding.side.serial = serial;
    finding.side.thread = thread;
    finding.set_access(static_cast<Access>(access.access), size_t(1) << access.size_log2,
                       find_shared(owner, access.address), access.address);
    add_finding(finding);
}

}  // namespace

ClusterBarrier::ClusterBarrier(const Cluster& cluster) : arrivals_() {
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        BlockState& block = *state_of(*cluster.blocks[rank]);
        arrivals_[rank].known = new VectorClockBuilder(block.worker->pool, block.serial);
    }
}

ClusterBarrier::~ClusterBarrier() {
    for (Arrivals& arrivals : arrivals_) delete arrivals.known;
}

void ClusterBarrier::arrive(ThreadState& thread, bool releases) {
    BlockState& block = *thread.block;
    become_exact(block);
    if (!releases) return release(thread, block.block->cluster);
    awaited_arriving_ = awaited_arriving_ || thread.awaited;
    Arrivals& arrivals = arrivals_[block.block->rank];
    uint32_t time = thread.time();
    ++arrivals.count;
    if (time < arrivals.earliest) arrivals.earliest = time;
    raise(arrivals.latest, time);
    raise(arrivals.barrier_time, thread.barrier_time);
    add_acquired(*arrivals.known, thread, Scope::cluster);
    arrivals.known->add_lane(thread.warp->warp->index, thread.lane, time);
    for (unsigned lane = 0; lane < lanes_per_warp && thread.warp->sync_time > thread.barrier_time; ++lane)
        arrivals.known->add_lane(thread.warp->warp->index, lane, thread.warp->sync_time - 1);
    // Give the thread a new time, so that this arrival does not release its later accesses.
    set_time(thread, ++block.time);
}

void ClusterBarrier::complete(const Cluster& cluster) {
    SyncLog& log = new_log(&cluster);
    Pool& pool = state_of(*cluster.blocks[0])->worker->pool;
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        BlockState& block = *state_of(*cluster.blocks[rank]);
        Arrivals& arrivals = arrivals_[rank];
        bool all = arrivals.count == block.block->thread_count;
        uint32_t joined = arrivals.barrier_time;
        if (all) joined = arrivals.earliest + 1;
        if (arrivals.count) {
            bool rows_say_more = !all || arrivals.latest > arrivals.earliest;
            Release* release = pool.take<Release>();
            // The release belongs to no single thread, so its thread and times are empty. Its vector clock contains the
            // times of all threads, one row per warp.
            *release = {block.serial, {}, {}, joined, {}, Scope::cluster, arrivals.known->finish(rows_say_more)};
            log.append(release, Scope::cluster);
        }
        auto* fresh = new VectorClockBuilder(pool, block.serial);
        delete arrivals.known;
        arrivals = {fresh, joined, ++block.time};
    }
    VectorClockBuilder builder(pool, state_of(*cluster.blocks[0])->serial);
    builder.add_log(&log, log.length(), Scope::cluster);
    complete_ = builder.finish();
    awaited_ = awaited_arriving_;
}

void ClusterBarrier::wait(ThreadState& thread) {
    const Arrivals& arrivals = arrivals_[thread.block->block->rank];
    const VectorClock* known = thread.extras ? thread.extras->known : nullptr;
    bool learned_more = thread.extras && thread.extras->acquired;
    if (learned_more || asked_ != known || asked_with_ != complete_) {
        VectorClockBuilder builder(thread.worker->pool, thread.block->serial);
        add_acquired(builder, thread, Scope::cluster);
        builder.add(complete_);
        asked_ = known;
        asked_with_ = learned_more ? nullptr : complete_;
        answer_ = builder.finish();
    }
    ThreadExtras& extras = extras_of(thread);
    extras.known = answer_;
    keep_acquired(thread, Scope::cluster);
    raise(thread.barrier_time, arrivals.joined);
    thread.awaited = thread.awaited || awaited_;
    if (thread.time() < arrivals.after) set_time(thread, arrivals.after);
}

ClusterBarrier& barrier_of(Cluster& cluster) {
    if (!cluster.checks) cluster.checks = new ClusterBarrier(cluster);
    return *static_cast<ClusterBarrier*>(cluster.checks);
}

void forget_cluster(Cluster& cluster) {
    delete static_cast<ClusterBarrier*>(cluster.checks);
    cluster.checks = nullptr;
}

void note_remote(ThreadState& thread, const AccessSite& site, uintptr_t address) {
    BlockState* owner = owner_of_shared(*thread.block, address);
    if (!owner || owner == thread.block) return;
    RemoteAccess access = {address, thread.time(), site.id, static_cast<uint8_t>(site.access), site.size_log2};
    if (owner->block->live == 0) {
        report_ended(thread, thread.block->serial, thread.thread->linear, access, *owner);
        return;
    }
    if (!owner->remote) owner->remote = new HashMap<RemoteAccess>();
    owner->remote->at(uint64_t(thread.block->serial) << 10 | thread.thread->linear) = access;
}

void check_remote(BlockState& block) {
    if (!block.remote) return;
    VectorClockBuilder builder(block.worker->pool, block.serial);
    for (unsigned i = 0; i < block.block->thread_count; ++i) add_acquired(builder, block.threads[i], Scope::cluster);
    const VectorClock* known = builder.finish();
    block.remote->each([&](uint64_t key, const RemoteAccess& access) {
        auto serial = static_cast<uint32_t>(key >> 10);
        unsigned thread = key & 1023;
        if (serial < the_launch.first_serial) return;
        if (known && access.time < known_barrier(known, serial)) return;
        if (covers(known, serial, thread, access.time)) return;
        report_ended(block.threads[0], serial, thread, access, block);
    });
}

void forget_remote(BlockState& block) {
    delete block.remote;
    block.remote = nullptr;
}

bool same_cluster(uint32_t one, uint32_t other) {
    uint32_t first = the_launch.start_serial, blocks = the_launch.blocks, size = the_launch.cluster_size;
    return one >= first && other >= first && (one - first) % blocks / size == (other - first) % blocks / size;
}

}  // namespace sim::checks
