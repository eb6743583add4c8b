#include "checks/synchronization/order.h"

namespace sim::checks {

void SyncLog::append(const Release* release, unsigned thread, uint32_t time) {
    if (!entries_.empty()) {
        const Entry& last = entries_.back();
        if (last.release == release && last.thread == thread && last.time == time) return;
    }
    uint32_t& last = last_of_block_.at(release->serial);
    entries_.push({release, thread, time, last});
    last = length();
    const VectorClock* known = release->known;
    if (!known) return;
    // A releasing thread has usually just acquired from this log, so nothing new is learned.
    bool learned_more = known->warp_mask != 0;
    for (uint32_t i = 0; i < known->log_count; ++i) learned_more = learned_more || known->logs[i].log != this;
    if (learned_more && (foreign_.empty() || foreign_.back().known != known)) foreign_.push({known, length()});
}

void VectorClockBuilder::add(const VectorClock* known) {
    if (!known || known == last_) return;
    last_ = known;
    if (known->serial == serial_) {
        for (unsigned warp = 0; warp < 32; ++warp)
            if (const WarpTimes* row = known->row(warp))
                for (unsigned lane = 0; lane < 32; ++lane) add_lane(warp, lane, row->time[lane]);
    }
    for (uint32_t i = 0; i < known->log_count; ++i) add_log(known->logs[i].log, known->logs[i].length);
}

void VectorClockBuilder::add_lane(unsigned warp, unsigned lane, uint32_t time) {
    if (!(warp_mask_ >> warp & 1)) {
        warp_mask_ |= 1u << warp;
        memset(&rows_[warp], 0, sizeof rows_[warp]);
    }
    if (rows_[warp].time[lane] < time) rows_[warp].time[lane] = time;
}

void VectorClockBuilder::add_log(SyncLog* log, uint32_t length) {
    for (LogPrefix& prefix : logs_) {
        if (prefix.log != log) continue;
        if (prefix.length < length) prefix.length = length;
        return;
    }
    logs_.push({log, length});
}

const VectorClock* VectorClockBuilder::finish(bool keep_rows) {
    if (!keep_rows) warp_mask_ = 0;
    if (!warp_mask_ && logs_.empty()) return nullptr;
    VectorClock* known = pool_.take<VectorClock>();
    known->serial = serial_;
    known->warp_mask = warp_mask_;
    known->warps = pool_.take<WarpTimes>(static_cast<size_t>(__builtin_popcount(warp_mask_)));
    unsigned row = 0;
    for (unsigned warp = 0; warp < 32; ++warp)
        if (warp_mask_ >> warp & 1) known->warps[row++] = rows_[warp];
    known->log_count = static_cast<uint32_t>(logs_.size());
    known->logs = pool_.take<LogPrefix>(logs_.size());
    for (size_t i = 0; i < logs_.size(); ++i) known->logs[i] = logs_[i];
    return known;
}

// Breadth-first search through what is known, what the releases in known logs knew, and so on: the answer is usually
// near.
class Search {
  public:
    Search(uint32_t serial, unsigned thread, uint32_t time, uint32_t from_block, const SyncLog* own_log)
        : serial_(serial), thread_(thread), time_(time), from_block_(from_block), own_log_(own_log) {}

    bool run(const VectorClock* start) {
        if (visit(start)) return true;
        for (size_t next = 0; next < open_.size(); ++next)
            if (visit(open_[next])) return true;
        return false;
    }

    // Returns the greatest barrier time of the block in all that is known.
    uint32_t latest_barrier(const VectorClock* start) {
        barriers_only_ = true;
        run(start);
        return latest_barrier_;
    }

  private:
    bool visit(const VectorClock* known) {
        if (known->serial == serial_ && !barriers_only_)
            if (const WarpTimes* row = known->row(thread_ / 32))
                if (row->time[thread_ % 32] >= time_) return true;
        for (uint32_t i = 0; i < known->log_count; ++i)
            if (visit(known->logs[i])) return true;
        return false;
    }

    bool visit(const LogPrefix& prefix) {
        // For two prefixes of a log, the longer subsumes the shorter.
        uint32_t& seen = seen_.at(reinterpret_cast<uint64_t>(prefix.log));
        if (seen >= prefix.length) return false;
        SyncLog& log = *prefix.log;
        if (uint32_t* last = log.last_of_block_.find(serial_)) {
            for (uint32_t entry = *last; entry > 0; entry = log.entries_[entry - 1].previous) {
                if (entry > prefix.length) continue;
                if (entry <= seen) break;
                if (says(log.entries_[entry - 1], &log == own_log_)) return true;
            }
        }
        for (const SyncLog::Foreign& foreign : log.foreign_) {
            if (foreign.entry > prefix.length) break;
            if (foreign.entry > seen && reaches(*log.entries_[foreign.entry - 1].release)) open_.push(foreign.known);
        }
        seen = prefix.length;
        return false;
    }

    bool reaches(const Release& release) const {
        if (release.scope >= Scope::device || release.serial == from_block_) return true;
        return release.scope == Scope::cluster && same_cluster(release.serial, from_block_);
    }

    bool says(const SyncLog::Entry& entry, bool own_log) {
        const Release& release = *entry.release;
        if (!reaches(release)) return false;
        if (latest_barrier_ < release.barrier_time) latest_barrier_ = release.barrier_time;
        if (barriers_only_) return false;
        if (own_log && thread_ == entry.thread && time_ <= entry.time) return true;
        if (time_ < release.barrier_time) return true;
        if (thread_ == release.thread) return time_ <= release.time;
        return thread_ / 32 == release.thread / 32u && time_ < release.warp_time;
    }

    uint32_t serial_;
    unsigned thread_;
    uint32_t time_;
    uint32_t from_block_;
    const SyncLog* own_log_;
    bool barriers_only_ = false;
    uint32_t latest_barrier_ = 0;
    Growable<const VectorClock*> open_;
    HashMap<uint32_t> seen_;
};

uint32_t known_barrier(const VectorClock* known, uint32_t serial, uint32_t from_block) {
    return known ? Search(serial, 0, 0, from_block, nullptr).latest_barrier(known) : 0;
}

bool covers(const VectorClock* known, uint32_t serial, unsigned thread, uint32_t time, uint32_t from_block,
            const SyncLog* log) {
    if (!known || time == Epoch::time_pending) return false;
    return Search(serial, thread, time, from_block, log).run(known);
}

}  // namespace sim::checks
