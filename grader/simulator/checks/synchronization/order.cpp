#include "checks/synchronization/order.h"

namespace sim::checks {

namespace {

Scope narrower(Scope a, Scope b) { return a < b ? a : b; }

// Returns whether an operation of this scope, executed by block `from`, has the threads of block `to` in its scope.
bool reaches(Scope scope, uint32_t from, uint32_t to) {
    return scope >= Scope::device || from == to || (scope == Scope::cluster && same_cluster(from, to));
}

}  // namespace

void SyncLog::append(const Release* release, Scope scope, unsigned thread, uint32_t time) {
    scope = narrower(scope, release->scope);
    if (!entries_.empty()) {
        const Entry& last = entries_.back();
        if (last.release == release && last.scope == scope && last.thread == thread && last.time == time) return;
    }
    narrow_ = narrow_ || scope < Scope::device;
    uint32_t& last = last_of_block_.at(release->serial);
    entries_.push({release, scope, thread, time, last});
    last = length();
    const VectorClock* known = release->known;
    if (!known) return;
    // A releasing thread has usually just acquired from this log, so nothing new is learned.
    bool learned_more = known->warp_mask != 0 || narrow_;
    for (uint32_t i = 0; i < known->log_count; ++i) learned_more = learned_more || known->logs[i].log != this;
    if (learned_more && (narrow_ || foreign_.empty() || foreign_.back().known != known))
        foreign_.push({known, length()});
}

void SyncLog::append_own(const SyncLog& log, uint32_t serial, unsigned thread) {
    for (const Entry& entry : log.entries_)
        if (entry.release->serial == serial && entry.thread == thread)
            append(entry.release, entry.scope, entry.thread, entry.time);
}

void VectorClockBuilder::add(const VectorClock* known) {
    if (!known || known == last_) return;
    last_ = known;
    if (known->serial == serial_) {
        for (unsigned warp = 0; warp < 32; ++warp)
            if (const WarpTimes* row = known->row(warp))
                for (unsigned lane = 0; lane < 32; ++lane) add_lane(warp, lane, row->time[lane]);
    }
    for (uint32_t i = 0; i < known->log_count; ++i)
        add_log(known->logs[i].log, known->logs[i].length, known->logs[i].scope);
}

void VectorClockBuilder::add_logs(const VectorClock* acquired, Scope scope) {
    for (uint32_t i = 0; acquired && i < acquired->log_count; ++i) {
        const LogPrefix& prefix = acquired->logs[i];
        add_log(prefix.log, prefix.length, narrower(prefix.scope, scope));
    }
}

void VectorClockBuilder::add_wider_logs(const VectorClock* acquired, Scope scope) {
    for (uint32_t i = 0; acquired && i < acquired->log_count; ++i) {
        const LogPrefix& prefix = acquired->logs[i];
        if (prefix.scope > scope) add_log(prefix.log, prefix.length, prefix.scope);
    }
}

void VectorClockBuilder::add_lane(unsigned warp, unsigned lane, uint32_t time) {
    if (!(warp_mask_ >> warp & 1)) {
        warp_mask_ |= 1u << warp;
        memset(&rows_[warp], 0, sizeof rows_[warp]);
    }
    if (rows_[warp].time[lane] < time) rows_[warp].time[lane] = time;
}

void VectorClockBuilder::add_log(SyncLog* log, uint32_t length, Scope scope) {
    for (LogPrefix& prefix : logs_) {
        if (prefix.log != log) continue;
        if (prefix.length >= length && prefix.scope >= scope) return;
        if (prefix.length > length || prefix.scope > scope) continue;
        prefix = {log, length, scope};
        return;
    }
    logs_.push({log, length, scope});
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

// Breadth-first search through vector clocks. It starts at the thread's own clock, continues with the clocks of the
// releases in the logs that this clock contains, and so on. The search usually ends early.
class Search {
  public:
    Search(uint32_t serial, unsigned thread, uint32_t time, const void* variable)
        : serial_(serial), thread_(thread), time_(time), variable_(variable) {}

    bool run(const VectorClock* start) {
        if (visit(start)) return true;
        for (size_t next = 0; next < open_.size(); ++next)
            if (visit(open_[next])) return true;
        return false;
    }

    // Returns the latest barrier time of the block that any reachable vector clock contains.
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
            if (visit(known->logs[i], known->serial)) return true;
        return false;
    }

    // Searches a log prefix that `block` has acquired.
    bool visit(const LogPrefix& prefix, uint32_t block) {
        SyncLog& log = *prefix.log;
        // For two prefixes of a log, the longer subsumes the shorter. If a scope is narrower than the device, this
        // holds only for prefixes with the same acquiring block and scope. So block and scope are then part of the key.
        uint64_t key = reinterpret_cast<uint64_t>(&log);
        if (log.narrow_ || prefix.scope < Scope::device)
            key = mix(key + (uint64_t(block) << 2) + static_cast<uint64_t>(prefix.scope));
        uint32_t& seen = seen_.at(key);
        if (seen >= prefix.length) return false;
        if (uint32_t* last = log.last_of_block_.find(serial_)) {
            for (uint32_t entry = *last; entry > 0; entry = log.entries_[entry - 1].previous) {
                if (entry > prefix.length) continue;
                if (entry <= seen) break;
                const SyncLog::Entry& known = log.entries_[entry - 1];
                if (reaches(known, prefix, block) && says(known, log.variable_ == variable_)) return true;
            }
        }
        for (const SyncLog::Foreign& foreign : log.foreign_) {
            if (foreign.entry > prefix.length) break;
            if (foreign.entry > seen && reaches(log.entries_[foreign.entry - 1], prefix, block))
                open_.push(foreign.known);
        }
        seen = prefix.length;
        return false;
    }

    static bool reaches(const SyncLog::Entry& entry, const LogPrefix& prefix, uint32_t block) {
        return checks::reaches(narrower(entry.scope, prefix.scope), entry.release->serial, block);
    }

    bool says(const SyncLog::Entry& entry, bool own_log) {
        const Release& release = *entry.release;
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
    const void* variable_;
    bool barriers_only_ = false;
    uint32_t latest_barrier_ = 0;
    Growable<const VectorClock*> open_;
    HashMap<uint32_t> seen_;
};

uint32_t known_barrier(const VectorClock* known, uint32_t serial) {
    return known ? Search(serial, 0, 0, nullptr).latest_barrier(known) : 0;
}

bool covers(const VectorClock* known, uint32_t serial, unsigned thread, uint32_t time, const void* variable) {
    if (!known || time == Epoch::time_pending) return false;
    return Search(serial, thread, time, variable).run(known);
}

}  // namespace sim::checks
