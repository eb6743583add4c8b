// The orders between accesses that access.h cannot tell with one comparison, and the races.
#include "checks/races.h"

#include "checks/access.h"
#include "checks/findings.h"
#include "checks/members.h"

namespace sim::checks {

namespace {

bool knows(const ThreadState& thread, uint32_t serial, unsigned other, uint32_t time, const void* variable) {
    if (!thread.extras || !thread.extras->known) return false;
    // What the last barrier taught is about other blocks only: of its own one, all before that barrier is ordered anyway.
    if (serial == thread.block->serial && thread.extras->known == thread.block->barrier_known) return false;
    const SyncLog* log = variable ? log_of(variable) : nullptr;
    return covers(thread.extras->known, serial, other, time, thread.block->serial, log);
}

uintptr_t address_of(const Cell& cell, const AccessSite& site) {
    return site.base + (static_cast<uintptr_t>(&cell - site.cells) << site.shift);
}

// What a set of readers (or atomic operations) looks like to a thread that conflicts with it.
struct Conflict {
    bool unordered;
    Stamp stamp;  // of one member that is not ordered
    uint16_t site;
};

// A set of which only the extent is known: every lane of the warp, or every thread of the block, may be a member.
bool all_known(const ThreadState& thread, Stamp set, const void* variable) {
    uint32_t serial = serial_of(set), time = time_of(set);
    unsigned first = 0, last = 0;
    if (sharing_of(set) == many_blocks) return false;
    if (ordered_by_barrier(thread, serial, time)) return true;
    if (sharing_of(set) == one_warp) {
        first = warp_of(set) * lanes_per_warp;
        last = first + lanes_per_warp;
    } else {
        last = thread.block->block->thread_count;
    }
    if (last > thread.block->block->thread_count) last = thread.block->block->thread_count;
    for (unsigned other = first; other < last; ++other) {
        if (serial == thread.block->serial && other == thread.thread->linear) continue;
        if (!knows(thread, serial, other, time, variable)) return false;
    }
    return true;
}

Conflict conflict_with_set(const ThreadState& thread, const Cell& cell, const AccessSite& site) {
    const BlockState& block = *thread.block;
    Stamp set = cell.reads;
    Conflict conflict = {false, set, cell.read_site};
    if (set == never) return conflict;
    const void* variable = is_atomic(set) ? reinterpret_cast<const void*>(address_of(cell, site)) : nullptr;
    if (const Members* members = members_of(cell)) {
        conflict.unordered = find_unordered(thread, *members, variable, &conflict.stamp, &conflict.site);
        return conflict;
    }
    if (sharing_of(set) == one_lane) {
        conflict.unordered = !ordered(thread, set, variable);
        return conflict;
    }
    uint32_t serial = serial_of(set), time = time_of(set);
    if (serial < the_launch.first_serial) return conflict;
    if (serial == block.serial && sharing_of(set) != many_blocks) {
        if (time < block.barrier_time) return conflict;
        bool same_warp = sharing_of(set) == one_warp && warp_of(set) == thread.warp->warp->index;
        if (same_warp && time < thread.warp->sync_time) return conflict;
    }
    if (all_known(thread, set, variable)) return conflict;
    conflict.unordered = true;
    // The first member stands for all, unless it is the thread itself.
    if (serial == block.serial && thread_of(set) == thread.thread->linear) {
        conflict.stamp = with_thread(set, cell.other & other_thread_mask);
        conflict.site = cell.other_site;
    }
    return conflict;
}

bool stale(const ThreadState& thread, const AccessSite& site, Stamp record) {
    return site.space == Space::shared && !is_own(*thread.block, serial_of(record));
}

void report_uninitialised(ThreadState& thread, const AccessSite& site, const Cell& cell) {
    Finding finding = finding_at(Check::initcheck, "uninitialised_read", thread, site.address);
    finding.side.access = static_cast<uint8_t>(site.access);
    finding.bytes = 1u << site.size_log2;
    finding.place = place_of(site.region, address_of(cell, site));
    add_finding(finding);
}

void report_cell_race(const ThreadState& thread, const Cell& cell, const AccessSite& site, Access access, Stamp other,
                      uint16_t other_site, Access other_access) {
    report_race(thread, site.address, access, 1u << site.size_log2, address_of(cell, site), site.region, other,
                other_site, other_access);
}

// Adds the thread to the set of readers or of atomic operations, which has unordered members already.
void share(ThreadState& thread, Cell& cell, uint16_t site, bool atomic) {
    Stamp set = cell.reads;
    Sharing sharing = one_warp;
    if (serial_of(set) != thread.block->serial)
        sharing = many_blocks;
    else if (warp_of(set) != thread.warp->warp->index)
        sharing = one_block;
    if (sharing_of(set) == one_lane) {
        cell.other = static_cast<uint16_t>((cell.other & cell_block_scope) | thread.thread->linear);
        cell.other_site = site;
    } else if (sharing_of(set) > sharing) {
        sharing = sharing_of(set);
    }
    uint32_t time = time_of(set) > thread.time() ? time_of(set) : thread.time();
    Stamp shared = with_time(with_sharing(set, sharing), time);
    cell.reads = atomic ? shared | atomic_bit : shared;
}

// Whether every member of the set happened before the thread's last step, so that the thread alone can stand for it.
bool superseded(const ThreadState& thread, Stamp set) {
    if (sharing_of(set) == one_lane) return ordered(thread, set);
    uint32_t serial = serial_of(set);
    if (serial < the_launch.first_serial) return true;
    if (serial != thread.block->serial || sharing_of(set) == many_blocks) return false;
    if (time_of(set) < thread.block->barrier_time) return true;
    return sharing_of(set) == one_warp && warp_of(set) == thread.warp->warp->index &&
           time_of(set) < thread.warp->sync_time;
}

void become_set(ThreadState& thread, Cell& cell, uint16_t site, bool atomic) {
    cell.reads = atomic ? thread.stamp | atomic_bit : thread.stamp;
    cell.read_site = site;
    cell.other &= static_cast<uint16_t>(~cell_block_scope);
}

// Checks against the last write; true when the memory has been written at all.
void check_last_write(ThreadState& thread, const Cell& cell, const AccessSite& site, Access access) {
    Stamp write = cell.write;
    if (time_of(write) == time_pending && write != never) {
        Access other = Access::async_write;
        report_cell_race(thread, cell, site, access, write, cell.write_site, other);
    } else if (!ordered(thread, write)) {
        // Of a bulk copy that others have waited for, but not this thread.
        Access other = is_atomic(write) ? Access::async_write : Access::write;
        report_cell_race(thread, cell, site, access, write, cell.write_site, other);
    }
}

bool never_written(const ThreadState& thread, const Cell& cell, const AccessSite& site) {
    if (is_atomic(cell.reads) && !stale(thread, site, cell.reads)) return false;
    if (site.space == Space::shared) return cell.write == never || stale(thread, site, cell.write);
    return cell.write == never && site.window == global_window;
}

}  // namespace

bool is_own(const BlockState& block, uint32_t serial) {
    uint32_t blocks = the_launch.blocks;
    return serial >= block.first_serial && (serial - block.first_serial) % blocks == 0;
}

bool ordered_by_barrier(const ThreadState& thread, uint32_t serial, uint32_t time) {
    if (serial < the_launch.first_serial) return true;
    if (time == time_pending) return false;
    const BlockState& block = *thread.block;
    if (serial == block.serial) return time < block.barrier_time;
    if (!thread.extras || !thread.extras->known) return false;
    const Known* known = thread.extras->known;
    uint32_t& answer = thread.worker->known_barriers.at(mix(reinterpret_cast<uint64_t>(known)) + serial);
    if (answer == 0) answer = known_barrier(known, serial, block.serial) + 1;
    return time < answer - 1;
}

bool ordered(const ThreadState& thread, Stamp access, const void* variable) {
    uint32_t serial = serial_of(access), time = time_of(access);
    if (serial < the_launch.first_serial) return true;
    if (time == time_pending) return false;
    unsigned other = thread_of(access);
    const BlockState& block = *thread.block;
    if (serial == block.serial) {
        if (other == thread.thread->linear || time < block.barrier_time) return true;
        if (other / lanes_per_warp == thread.warp->warp->index && time < thread.warp->sync_time) return true;
    } else if (ordered_by_barrier(thread, serial, time)) {
        return true;
    }
    return knows(thread, serial, other, time, variable);
}

void report_race(const ThreadState& thread, const void* code, Access access, uint32_t bytes, uintptr_t address,
                 const Region* region, Stamp other, uint16_t other_site, Access other_access) {
    const char* kind = "between_blocks";
    if (other_access == Access::async_write || other_access == Access::async_read) {
        kind = "copy_not_awaited";
    } else if (serial_of(other) == thread.block->serial) {
        kind = warp_of(other) == thread.warp->warp->index ? "within_warp" : "within_block";
    }
    Finding finding = finding_at(Check::racecheck, kind, thread, code);
    finding.side.access = static_cast<uint8_t>(access);
    finding.bytes = bytes;
    finding.place = place_of(region, address);
    finding.other.address = site_address(other_site);
    finding.other.access = static_cast<uint8_t>(other_access);
    finding.other.has_thread = true;
    finding.other.serial = serial_of(other);
    finding.other.thread = thread_of(other);
    add_finding(finding);
}

void read_conflict(ThreadState& thread, Cell& cell, const AccessSite& site) {
    if (never_written(thread, cell, site)) {
        report_uninitialised(thread, site, cell);
    } else if (cell.write != never && !stale(thread, site, cell.write)) {
        check_last_write(thread, cell, site, site.access);
    }
}

void add_reader(ThreadState& thread, Cell& cell, const AccessSite& site) {
    Stamp set = cell.reads;
    if (stale(thread, site, set)) {
        become_set(thread, cell, site.id, false);
    } else if (is_atomic(set)) {
        Conflict conflict = conflict_with_set(thread, cell, site);
        if (conflict.unordered)
            report_cell_race(thread, cell, site, site.access, conflict.stamp, conflict.site, Access::atomic);
        become_set(thread, cell, site.id, false);
    } else if (superseded(thread, set)) {
        become_set(thread, cell, site.id, false);
    } else if (thread.block->exact) {
        add_member(thread, cell, site.id, false);
    } else {
        share(thread, cell, site.id, false);
    }
}

void write_conflict(ThreadState& thread, Cell& cell, const AccessSite& site, uintptr_t address) {
    Stamp write = cell.write;
    if (write != never && write != thread.stamp && !stale(thread, site, write)) {
        if (time_of(write) == time_pending || site.access != Access::write) {
            check_last_write(thread, cell, site, site.access);
        } else if (!ordered(thread, write)) {
            // No race if it writes what is there already; that shows only afterwards.
            ThreadExtras& extras = extras_of(thread);
            settle_last_write(thread);
            PendingWrite& pending = extras.write;
            pending.looks = 0;
            pending.bytes = size_t(1) << site.size_log2;
            pending.address = reinterpret_cast<const void*>(address);
            memcpy(pending.before, pending.address, pending.bytes);
            pending.code_address = site.address;
            pending.other = write;
            pending.other_site = cell.write_site;
            pending.region = site.region;
            extras.has_write = true;
            thread.pending = true;
        }
    }
    if (cell.reads != never && cell.reads != thread.stamp && !stale(thread, site, cell.reads)) {
        Conflict conflict = conflict_with_set(thread, cell, site);
        if (conflict.unordered) {
            Access other = is_atomic(cell.reads) ? Access::atomic : Access::read;
            if (time_of(conflict.stamp) == time_pending) other = Access::async_read;
            report_cell_race(thread, cell, site, site.access, conflict.stamp, conflict.site, other);
        }
    }
    cell.reads = never;
    cell.other &= static_cast<uint16_t>(~cell_block_scope);
}

void atomic_cell(ThreadState& thread, Cell& cell, const AccessSite& site, bool reads, bool block_scope) {
    const Floors& floors = thread.floors[site.window];
    if (cell.write - floors.low >= floors.span) {
        if (never_written(thread, cell, site)) {
            if (reads) report_uninitialised(thread, site, cell);
            // From now on it has a value, which everybody may take to be older than anything.
            cell.write = site.space == Space::shared ? floors.low : written_before;
        } else if (cell.write != never && !stale(thread, site, cell.write)) {
            check_last_write(thread, cell, site, site.access);
        }
    }
    Stamp set = cell.reads;
    if (set < floors.low + floors.span || stale(thread, site, set)) {
        become_set(thread, cell, site.id, true);
    } else if (!is_atomic(set)) {
        Conflict conflict = conflict_with_set(thread, cell, site);
        if (conflict.unordered)
            report_cell_race(thread, cell, site, site.access, conflict.stamp, conflict.site, Access::read);
        become_set(thread, cell, site.id, true);
    } else {
        bool other_scope = block_scope || (cell.other & cell_block_scope);
        if (other_scope && serial_of(set) != thread.block->serial) {
            Conflict conflict = conflict_with_set(thread, cell, site);
            if (conflict.unordered)
                report_cell_race(thread, cell, site, site.access, conflict.stamp, conflict.site, Access::atomic);
        }
        if (superseded(thread, set))
            become_set(thread, cell, site.id, true);
        else if (thread.block->exact)
            add_member(thread, cell, site.id, true);
        else if ((set & ~Stamp(31)) != (thread.warp_covered | atomic_bit))
            share(thread, cell, site.id, true);
    }
    if (block_scope) cell.other |= cell_block_scope;
}

}  // namespace sim::checks
