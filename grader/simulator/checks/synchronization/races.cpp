// Orders between accesses that access.h cannot decide with one comparison, and race detection.
#include "checks/synchronization/races.h"

#include "checks/core/access.h"
#include "checks/synchronization/clusters.h"
#include "checks/report/findings.h"
#include "checks/synchronization/reader_set.h"
#include "checks/asynchronous/wgmma.h"
#include "checks/synchronization/streams.h"
#include "checks/synchronization/volatiles.h"

namespace sim::checks {

namespace {

bool knows(const ThreadState& thread, uint32_t serial, unsigned other, uint32_t time, const void* variable) {
    if (!thread.extras || !thread.extras->known) return false;
    // The clock of the last block barrier tells nothing new about the thread's own block: barrier_time already orders
    // all accesses of the block before that barrier.
    if (serial == thread.block->serial && thread.extras->known == thread.block->barrier_known) return false;
    return covers(thread.extras->known, serial, other, time, variable);
}

uintptr_t address_of(const ShadowCell& cell, const AccessSite& site) {
    return site.base + (static_cast<uintptr_t>(&cell - site.cells) << site.shift);
}

// A set of readers (or atomic operations) as seen by a thread that conflicts with it.
struct Conflict {
    bool unordered;
    Epoch epoch;  // epoch of a member that is not ordered
    uint16_t site;
    Kind kind;
};
constexpr Epoch of_another_block = never;  // stands for a thread of another block that is not known

// Returns whether all possible members of a set are ordered before the thread. Only the extent of the set is known, so
// every lane of the warp, or every thread of the block, may be a member.
bool all_known(const ThreadState& thread, Epoch set, const void* variable) {
    uint32_t serial = set.serial(), time = set.time();
    unsigned first = 0, last = 0;
    if (set.sharing() == many_blocks) return false;
    if (ordered_by_barrier(thread, serial, time)) return true;
    if (set.sharing() == one_warp) {
        first = set.warp() * lanes_per_warp;
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

// Returns a member of the cell's set that conflicts with the access. `kinds`: the kinds of members that conflict.
Conflict conflict_with_set(const ThreadState& thread, const ShadowCell& cell, const AccessSite& site, unsigned kinds) {
    const BlockState& block = *thread.block;
    Epoch set = cell.reads;
    Conflict conflict = {false, set, cell.read_site, ordinary_read};
    if (set == never) return conflict;
    if (is_operand_mark(set)) {
        if (kinds & ordinary_read)
            conflict.unordered = overtakes_wgmma(thread, address_of(cell, site), &conflict.epoch);
        return conflict;
    }
    const void* variable = set.atomic() ? reinterpret_cast<const void*>(address_of(cell, site)) : nullptr;
    if (const ReaderSet* members = members_of(cell)) {
        Member found;
        if (find_unordered(thread, *members, kinds, variable, &found))
            conflict = {true, found.epoch, found.site, found.kind};
        return conflict;
    }
    if (set.atomic()) conflict.kind = static_cast<Kind>(kinds_of(cell));
    if (!(conflict.kind & kinds)) return conflict;
    if (set.sharing() == one_lane) {
        conflict.unordered = !ordered(thread, set, variable);
        return conflict;
    }
    uint32_t serial = set.serial(), time = set.time();
    if (came_before(thread, serial)) return conflict;
    if (serial == block.serial && set.sharing() != many_blocks) {
        if (time < thread.barrier_time) return conflict;
        bool same_warp = set.sharing() == one_warp && set.warp() == thread.warp->warp->index;
        if (same_warp && time < thread.warp->sync_time) return conflict;
    }
    if (all_known(thread, set, variable)) return conflict;
    conflict.unordered = true;
    // The finding names the first member of the set. In two cases it names the last member that widened the set
    // instead: (1) the first member is ordered or is the thread itself, (2) the first member is in the thread's own
    // warp, but the set includes other warps. In case (2), the race between warps is more useful: a barrier that fixes
    // it also orders the own warp.
    bool nearer = set.sharing() == one_block && set.warp() == thread.warp->warp->index;
    if (serial == block.serial && (nearer || ordered(thread, set.with_sharing(one_lane), variable))) {
        conflict.epoch = set.sharing() == many_blocks ? of_another_block : set.with_thread(cell.second.thread());
        conflict.site = cell.second.site();
    }
    return conflict;
}

bool stale(const ThreadState& thread, const AccessSite& site, Epoch record) {
    return site.window == shared_window && !is_own(*thread.block, record.serial());
}

// Returns whether a block without checks may have written the memory, ordered before this access.
bool may_be_written(const BlockState& block, const AccessSite& site) {
    if (site.space != Space::global || !the_launch.launch->partly_checked) return false;
    return the_launch.blocks_joined || may_know_others(block);
}

void report_uninitialized(ThreadState& thread, const AccessSite& site, const ShadowCell& cell) {
    if (may_be_written(*thread.block, site)) return;
    Finding finding = finding_at(FindingKind::uninitialized_read, thread, site.address);
    finding.set_access(site.access, size_t(1) << site.size_log2, site.region, address_of(cell, site));
    add_finding(finding);
}

void report_cell_race(const ThreadState& thread, const ShadowCell& cell, const AccessSite& site, Access access,
                      Epoch other, uint16_t other_site, Access other_access) {
    report_race(thread, site.address, access, 1u << site.size_log2, address_of(cell, site), site.region, other,
                other_site, other_access);
}

// Returns the kind of access by the conflicting member of the cell's set.
Access access_of(const ShadowCell& cell, const Conflict& conflict) {
    if (is_operand_mark(cell.reads)) return Access::operand_read;
    if (!conflict.epoch.pending()) return access_of(cell, conflict.kind);
    return conflict.kind == ordinary_read ? Access::async_read : Access::async_write;
}

// Adds the thread to a set of readers or of atomic operations, by widening the set's extent.
void share(ThreadState& thread, ShadowCell& cell, uint16_t site) {
    Epoch set = cell.reads;
    Sharing sharing = one_warp;
    if (set.serial() != thread.block->serial)
        sharing = many_blocks;
    else if (set.warp() != thread.warp->warp->index)
        sharing = one_block;
    if (sharing > set.sharing()) {
        cell.second.set(site, thread.thread->linear);
    } else {
        sharing = set.sharing();
    }
    uint32_t time = set.time() > thread.time() ? set.time() : thread.time();
    cell.reads = set.with_sharing(sharing).with_time(time);
}

// Returns whether every member of the set is ordered before the thread, so that the thread alone can replace the set.
bool superseded(const ThreadState& thread, const ShadowCell& cell) {
    Epoch set = cell.reads;
    if (set.sharing() == one_lane) return ordered(thread, set);
    uint32_t serial = set.serial();
    if (serial < the_launch.open_serial && !overlaps(thread, serial)) return true;
    // The set is of an earlier launch. If the set has a list of members, they may be of several launches. `serial` is
    // that of the first launch only, so members of other launches may be unordered.
    if (serial < the_launch.first_serial) return !members_of(cell) && came_before(thread, serial);
    if (serial != thread.block->serial || set.sharing() == many_blocks) return false;
    if (set.time() < thread.barrier_time) return true;
    return set.sharing() == one_warp && set.warp() == thread.warp->warp->index && set.time() < thread.warp->sync_time;
}

void become_set(ThreadState& thread, ShadowCell& cell, uint16_t site, Kind kind) {
    cell.reads = thread.epoch.with_atomic(kind != ordinary_read);
    cell.read_site = site;
    cell.second.set_only_loads(kind == atomic_load);
    cell.second.set_block_scope(false);
}

// An ordinary write is always by one lane. So a write whose `sharing` is `one_warp` stands for an atomic operation.
constexpr Sharing by_atomic = one_warp;
bool is_by_atomic(Epoch write) { return write.sharing() == by_atomic; }

// Called when an ordinary read is about to replace a set of atomic stores, all ordered before the read. Keeps one of
// the stores as the cell's last write, because readers of other blocks may not be ordered after it. Prefers a store by
// another block.
void keep_atomic_as_write(const ThreadState& thread, ShadowCell& cell) {
    Epoch kept = cell.reads;
    uint16_t site = cell.read_site;
    if (const ReaderSet* members = members_of(cell)) {
        const Member* member = nullptr;
        for (uint32_t i = 0; i < members->count; ++i) {
            const Member& next = members->list[i];
            if (next.kind == atomic_store && (!member || member->epoch.serial() == thread.block->serial))
                member = &next;
        }
        if (!member) return;
        kept = member->epoch;
        site = member->site;
        if (member->lanes)
            kept = kept.with_thread(kept.warp() * lanes_per_warp + static_cast<unsigned>(__builtin_ctz(member->lanes)));
    }
    cell.write = kept.with_sharing(by_atomic).with_atomic(false);
    cell.write_site = site;
}

// Checks the access against the last write.
void check_last_write(ThreadState& thread, const ShadowCell& cell, const AccessSite& site, Access access) {
    Epoch write = cell.write;
    if (write.pending()) {
        Access other = Access::async_write;
        report_cell_race(thread, cell, site, access, write, cell.write_site, other);
    } else if (is_by_atomic(write)) {
        const void* variable = reinterpret_cast<const void*>(address_of(cell, site));
        bool conflicts = access != Access::atomic && !(is_volatile(access) && cell.second.synchronizes());
        if (conflicts && !ordered(thread, write, variable))
            report_cell_race(thread, cell, site, access, write, cell.write_site, access_of(cell, atomic_store));
    } else if (!ordered(thread, write)) {
        // If the write is marked as atomic, a bulk copy did it. Another thread has waited for that copy, but not this
        // one.
        Access other = write.atomic() ? Access::async_write : Access::write;
        report_cell_race(thread, cell, site, access, write, cell.write_site, other);
    }
}

bool never_written(const ThreadState& thread, const ShadowCell& cell, const AccessSite& site) {
    return cell.write == never || stale(thread, site, cell.write);
}

}  // namespace

bool is_own(const BlockState& block, uint32_t serial) {
    uint32_t first = block.cluster_first;
    return serial >= first && (serial - first) % the_launch.blocks < block.cluster_size;
}

bool ordered_by_barrier(const ThreadState& thread, uint32_t serial, uint32_t time) {
    if (came_before(thread, serial)) return true;
    if (time == Epoch::time_pending) return false;
    const BlockState& block = *thread.block;
    if (serial == block.serial) return time < thread.barrier_time;
    if (time == 0) return true;  // the value was stored before the launch, so it is ordered
    if (!thread.extras || !thread.extras->known) return false;
    const VectorClock* known = thread.extras->known;
    uint32_t& answer = thread.worker->known_barriers.at(mix(reinterpret_cast<uint64_t>(known)) + serial);
    if (answer == 0) answer = known_barrier(known, serial) + 1;
    return time < answer - 1;
}

bool ordered(const ThreadState& thread, Epoch access, const void* variable) {
    uint32_t serial = access.serial(), time = access.time();
    if (came_before(thread, serial)) return true;
    if (time == Epoch::time_pending) return false;
    unsigned other = access.thread();
    const BlockState& block = *thread.block;
    if (serial == block.serial) {
        if (other == thread.thread->linear || time < thread.barrier_time) return true;
        if (other / lanes_per_warp == thread.warp->warp->index && time < thread.warp->sync_time) return true;
    } else if (ordered_by_barrier(thread, serial, time)) {
        return true;
    }
    return knows(thread, serial, other, time, variable);
}

void report_race(const ThreadState& thread, const void* code, Access access, uint32_t bytes, uintptr_t address,
                 const Region* region, Epoch other, uint16_t other_site, Access other_access) {
    FindingKind kind = FindingKind::between_blocks;
    bool streams = other != of_another_block && of_earlier_launch(other.serial());
    bool of_others = other == of_another_block || !is_own(*thread.block, other.serial());
    if (!streams && of_others && may_know_others(*thread.block)) return;
    if (streams) {
        kind = overlaps(thread, other.serial()) ? FindingKind::between_grids : FindingKind::between_streams;
    } else if (other_access == Access::async_write || other_access == Access::async_read) {
        kind = FindingKind::copy_not_awaited;
    } else if (other_access == Access::operand_read) {
        kind = FindingKind::operands_not_awaited;
    } else if (other.serial() == thread.block->serial) {
        kind = other.warp() == thread.warp->warp->index ? FindingKind::within_warp : FindingKind::within_block;
    } else if (is_own(*thread.block, other.serial())) {
        kind = FindingKind::within_cluster;
    }
    Finding finding = finding_at(kind, thread, code);
    finding.set_access(access, bytes, region, address);
    finding.set_other(other_site, other_access, other);
    finding.other.has_thread = other != of_another_block;
    if (streams) {
        name_work(finding.side, thread.block->serial);
        name_work(finding.other, other.serial());
        finding.other.has_thread = !finding.other.call;
    }
    bool with_atomic = (access == Access::volatile_write && other_access == Access::atomic) ||
                       (access == Access::atomic && other_access == Access::volatile_write);
    bool exempt_if_polled = (is_volatile(access) && is_volatile(other_access)) || with_atomic;
    if (exempt_if_polled && region->space != Space::shared && !streams) return hold_race(finding, address);
    add_finding(finding);
}

void report_missing_proxy_fence(const ThreadState& thread, const AccessSite& site, const ShadowCell& cell,
                                uintptr_t address) {
    Finding finding = finding_at(FindingKind::missing_proxy_fence, thread, site.address);
    finding.set_access(site.access, size_t(1) << site.size_log2, site.region, address);
    finding.set_other(cell.write_site, Access::write, cell.write);
    add_finding(finding);
}

void read_conflict(ThreadState& thread, ShadowCell& cell, const AccessSite& site) {
    if (site.space == Space::distributed) note_remote(thread, site, address_of(cell, site));
    if (never_written(thread, cell, site)) {
        report_uninitialized(thread, site, cell);
    } else {
        check_last_write(thread, cell, site, site.access);
    }
}

void add_reader(ThreadState& thread, ShadowCell& cell, const AccessSite& site) {
    Epoch set = cell.reads;
    if (stale(thread, site, set)) {
        become_set(thread, cell, site.id, ordinary_read);
    } else if (is_operand_mark(set)) {
        // Keep the epoch that marks a read by wgmma. Without it, later writes would not be compared with that wgmma.
    } else if (set.atomic() && (kinds_of(cell) & atomic_store)) {
        Conflict conflict = conflict_with_set(thread, cell, site, atomic_store);
        if (conflict.unordered)
            report_cell_race(thread, cell, site, site.access, conflict.epoch, conflict.site, access_of(cell, conflict));
        else if (site.space == Space::global && set.serial() >= the_launch.first_serial)
            keep_atomic_as_write(thread, cell);
        remove_members(cell, atomic_store);
        if (members_of(cell) && members_of(cell)->count)
            add_member(thread, cell, site.id, ordinary_read);
        else
            become_set(thread, cell, site.id, ordinary_read);
    } else if (superseded(thread, cell)) {
        become_set(thread, cell, site.id, ordinary_read);
    } else if (thread.block->exact || set.atomic()) {
        add_member(thread, cell, site.id, ordinary_read);
    } else {
        share(thread, cell, site.id);
    }
}

void write_conflict(ThreadState& thread, ShadowCell& cell, const AccessSite& site, uintptr_t address) {
    if (site.space == Space::distributed) note_remote(thread, site, address);
    Epoch write = cell.write;
    if (write != never && write != thread.epoch && !stale(thread, site, write)) {
        if (write.pending() || is_by_atomic(write) || site.access != Access::write) {
            check_last_write(thread, cell, site, site.access);
        } else if (!ordered(thread, write)) {
            note_write(thread, site, address, size_t(1) << site.size_log2, write, cell.write_site, Access::write);
        }
    }
    if (cell.reads != never && cell.reads != thread.epoch && !stale(thread, site, cell.reads)) {
        Conflict conflict = conflict_with_set(thread, cell, site, every_kind);
        if (conflict.unordered)
            report_cell_race(thread, cell, site, site.access, conflict.epoch, conflict.site, access_of(cell, conflict));
    }
    cell.reads = never;
}

Access access_of(const ShadowCell& cell, unsigned kind) {
    if (kind == ordinary_read) return Access::read;
    if (cell.second.synchronizes()) return Access::atomic;
    return kind == atomic_load ? Access::volatile_read : Access::volatile_write;
}

Epoch last_atomic_store(const ShadowCell& cell) {
    const ReaderSet* members = members_of(cell);
    if (!members) return kinds_of(cell) == atomic_store ? cell.reads : never;
    for (uint32_t i = members->count; i-- > 0;)
        if (members->list[i].kind == atomic_store) return members->list[i].epoch;
    return never;
}

// Returns whether another block has written to the cell in this launch.
static bool written_by_other_block(const ThreadState& thread, const ShadowCell& cell) {
    if (the_launch.blocks == 1) return false;
    auto by_other = [&](Epoch epoch) {
        bool shared = epoch.atomic() && epoch.sharing() == many_blocks;
        return epoch.serial() >= the_launch.first_serial && (shared || epoch.serial() != thread.block->serial);
    };
    if (by_other(cell.write)) return true;
    const ReaderSet* members = members_of(cell);
    if (!members) return (kinds_of(cell) & atomic_store) && by_other(cell.reads);
    for (uint32_t i = 0; i < members->count; ++i)
        if (members->list[i].kind == atomic_store && by_other(members->list[i].epoch)) return true;
    return false;
}

void atomic_cell(ThreadState& thread, ShadowCell& cell, const AccessSite& site, AtomicAccess access) {
    if (site.space == Space::distributed) note_remote(thread, site, address_of(cell, site));
    if (access.reads && written_by_other_block(thread, cell)) ++thread.block->foreign_reads;
    const EpochRange& floor = thread.floors[site.window];
    if (!floor.contains(cell.write)) {
        if (never_written(thread, cell, site)) {
            if (access.reads) report_uninitialized(thread, site, cell);
            // No write was recorded. To report this only once, let the cell count as written, with an epoch that is
            // ordered before every access.
            cell.write = site.window == shared_window ? Epoch(thread.block->first_serial, 0) : written_before;
        } else {
            check_last_write(thread, cell, site, site.access);
        }
    }
    Epoch set = cell.reads;
    Kind kind = access.stores ? atomic_store : atomic_load;
    bool synchronized = cell.second.synchronizes();
    if (site.access == Access::atomic) cell.second.set_synchronizes();
    if (set < floor.end() || stale(thread, site, set)) {
        become_set(thread, cell, site.id, kind);
    } else if (is_operand_mark(set) && !access.stores) {
        // Keep the epoch that marks a read by wgmma, as add_reader() does.
    } else {
        unsigned conflicting = access.stores ? ordinary_read : 0;
        bool narrow = access.block_scope || cell.second.block_scope();
        bool orders_nothing = is_volatile(site.access) && !cell.second.synchronizes();
        if (orders_nothing || (narrow && set.atomic() && set.serial() != thread.block->serial))
            conflicting |= access.stores ? atomic_load | atomic_store : atomic_store;
        // The first atomic operation at a location follows volatile accesses only.
        bool first = site.access == Access::atomic && !synchronized;
        bool beside_atomic =
            synchronized && site.access == Access::volatile_write && !is_polled(address_of(cell, site));
        if ((first && access.stores) || beside_atomic) conflicting |= atomic_store;
        Conflict conflict = conflict_with_set(thread, cell, site, conflicting);
        if (conflict.unordered) {
            Access other = access_of(cell, conflict);
            if (first && other == Access::atomic && conflict.kind == atomic_store) other = Access::volatile_write;
            bool may_write_same = other == Access::volatile_write || (beside_atomic && other == Access::atomic);
            if (is_volatile(site.access) && may_write_same && access.stores)
                note_write(thread, site, address_of(cell, site), size_t(1) << site.shift, conflict.epoch, conflict.site,
                           other);
            else
                report_cell_race(thread, cell, site, site.access, conflict.epoch, conflict.site, other);
        }
        if (superseded(thread, cell) || (access.stores && !set.atomic())) {
            bool stored = kinds_of(cell) & atomic_store;
            if (stored && !access.stores && site.space == Space::global && set.serial() >= the_launch.first_serial)
                keep_atomic_as_write(thread, cell);
            become_set(thread, cell, site.id, kind);
        } else if (thread.block->exact || set.pending() || thread.epoch.pending() || kinds_of(cell) != kind) {
            add_member(thread, cell, site.id, kind);
        } else if (set.without_lane() != thread.warp_covered.with_atomic(true)) {
            share(thread, cell, site.id);
        }
    }
    if (access.block_scope) cell.second.set_block_scope(true);
}

}  // namespace sim::checks
