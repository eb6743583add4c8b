#include "checks/synchronization/reader_set.h"

#include "checks/synchronization/races.h"
#include "checks/synchronization/streams.h"

namespace sim::checks {

namespace {

// All reader sets, in chunks. A cell with a set stores its number (SecondReader::number).
constexpr uint32_t chunk_records = 4096;
constexpr uint32_t max_chunks = 1 << 14;
ReaderSet* chunks[max_chunks];
uint32_t used = 0;
SpinLock lock;

static_assert(uint64_t(chunk_records) * max_chunks <= SecondReader::number_limit, "a cell has room for each number");

ReaderSet* record_of(const ShadowCell& cell) {
    if (!cell.second.listed()) return nullptr;
    uint32_t number = cell.second.number();
    if (number >= __atomic_load_n(&used, __ATOMIC_ACQUIRE)) return nullptr;
    ReaderSet& record = chunks[number / chunk_records][number % chunk_records];
    return record.cell == &cell ? &record : nullptr;  // otherwise the record belongs to an earlier launch
}

// Returns a new record for the cell, or null when all numbers are used.
ReaderSet* new_record(ShadowCell& cell) {
    Locked locked(lock);
    uint32_t number = used;
    if (number / chunk_records >= max_chunks) return nullptr;
    ReaderSet*& chunk = chunks[number / chunk_records];
    if (!chunk) chunk = static_cast<ReaderSet*>(malloc(chunk_records * sizeof(ReaderSet)));
    if (!chunk) return nullptr;
    ReaderSet& record = chunk[number % chunk_records];
    record.cell = &cell;
    record.list = record.own;
    record.count = 0;
    record.room = sizeof record.own / sizeof record.own[0];
    cell.second.set_list(number);
    __atomic_store_n(&used, number + 1, __ATOMIC_RELEASE);
    return &record;
}

// Removes readers of earlier launches that are ordered before everything from now on.
void drop_ordered(ReaderSet& members) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < members.count; ++i)
        if (!came_before(members.list[i].epoch.serial())) members.list[kept++] = members.list[i];
    members.count = kept;
}

void push(ReaderSet& members, const Member& member) {
    if (members.count == members.room) drop_ordered(members);
    if (members.count == members.room) {
        uint32_t room = 2 * members.room;
        bool own = members.list == members.own;
        auto* grown = static_cast<Member*>(realloc(own ? nullptr : members.list, room * sizeof(Member)));
        if (!grown) return;
        if (own) memcpy(static_cast<void*>(grown), members.own, sizeof members.own);
        members.list = grown;
        members.room = room;
    }
    members.list[members.count++] = member;
}

uint32_t lanes_of(Epoch set) {
    return set.sharing() == one_lane ? 1u << set.lane() : set.sharing() == one_warp ? ~0u : 0;
}

// Adds the thread to an existing member of its warp, or replaces that member by the thread. Returns false if the warp
// has no member.
bool merge(const ThreadState& thread, ReaderSet& members, uint16_t site, Kind kind) {
    uint32_t lane = 1u << thread.lane;
    // Members of one block are usually adjacent, so the search stops at another block. It may miss a member of the
    // warp; a second entry for a warp does no harm.
    for (uint32_t i = members.count; i-- > 0;) {
        Member& member = members.list[i];
        if (member.epoch.serial() != thread.block->serial || !member.lanes) return false;
        if (member.kind != kind || member.epoch.pending()) continue;
        if (member.epoch.time() < thread.barrier_time) {
            member = members.list[--members.count];
            continue;
        }
        if (member.epoch.warp() != thread.warp->warp->index) continue;
        if (member.epoch.time() == thread.time()) {
            member.lanes |= lane;
            return true;
        }
        if (member.lanes == lane || member.epoch.time() < thread.warp->sync_time) {
            member = {thread.epoch, lane, site, kind};
            return true;
        }
        member.lanes &= ~lane;
    }
    return false;
}

// Returns the kind of a set that has no list of members.
Kind kind_of(const ShadowCell& cell) {
    if (!cell.reads.atomic()) return ordinary_read;
    return cell.second.only_loads() ? atomic_load : atomic_store;
}

// Returns the record of the cell's set, created if needed. The readers that the cell itself describes become the first
// member.
ReaderSet* begin_members(ShadowCell& cell) {
    ReaderSet* members = record_of(cell);
    if (members && members->reads == cell.reads) return members;
    Member first = {cell.reads.with_atomic(false), lanes_of(cell.reads), cell.read_site, kind_of(cell)};
    if (!members) members = new_record(cell);
    if (!members) return nullptr;
    members->count = 0;
    if (cell.reads != never) push(*members, first);
    return members;
}

// Returns the epoch of a cell whose set has a list. It differs from every earlier `reads` of the record and from the
// epoch of every single reader, so members_of() can detect an outdated record. While a member is pending, the set is
// pending too, so no barrier orders it. It has one_block, because pending with many_blocks marks an operand (wgmma.h).
Epoch epoch_of_list(Epoch last, bool pending) {
    return pending ? last.with_time(Epoch::time_pending).with_sharing(one_block) : last.with_sharing(many_blocks);
}

void end_members(ReaderSet& members, ShadowCell& cell, Epoch last, uint16_t site, bool atomic) {
    cell.reads = epoch_of_list(last, cell.reads.pending() || last.pending()).with_atomic(atomic);
    cell.read_site = site;
    members.reads = cell.reads;
}

}  // namespace

const ReaderSet* members_of(const ShadowCell& cell) {
    const ReaderSet* record = record_of(cell);
    return record && record->reads == cell.reads ? record : nullptr;
}

void copy_members(const ReaderSet& members, ShadowCell& cell) {
    ReaderSet* copy = new_record(cell);
    if (!copy) return;
    for (uint32_t i = 0; i < members.count; ++i) push(*copy, members.list[i]);
    copy->reads = cell.reads;
}

void add_member(ThreadState& thread, ShadowCell& cell, uint16_t site, Kind kind) {
    // A set with members other than ordinary reads is marked as atomic, so that each later access examines its members.
    bool atomic = cell.reads.atomic() || kind != ordinary_read;
    ReaderSet* members = begin_members(cell);
    if (!members) return;
    if (thread.epoch.pending() || !merge(thread, *members, site, kind))
        push(*members, {thread.epoch, 1u << thread.lane, site, kind});
    end_members(*members, cell, thread.epoch, site, atomic);
}

void add_member(ShadowCell& cell, Epoch epoch, uint16_t site) {
    bool atomic = cell.reads.atomic();
    ReaderSet* members = begin_members(cell);
    if (!members) return;
    push(*members, {epoch, 1u, site, ordinary_read});
    end_members(*members, cell, epoch, site, atomic);
}

void remove_members(ShadowCell& cell, Kind kind) {
    ReaderSet* members = record_of(cell);
    if (!members || members->reads != cell.reads) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < members->count; ++i)
        if (members->list[i].kind != kind) members->list[kept++] = members->list[i];
    members->count = kept;
}

void replace_pending(ShadowCell& cell, Epoch pending, Epoch epoch) {
    bool atomic = cell.reads.atomic();
    if (cell.reads.with_atomic(false) == pending) {
        cell.reads = epoch.with_atomic(atomic);
        return;
    }
    ReaderSet* members = record_of(cell);
    if (!members || members->reads != cell.reads) return;
    uint32_t number = 0;
    while (number < members->count && members->list[number].epoch != pending) ++number;
    if (number == members->count) return;
    Member member = members->list[number];
    member.epoch = epoch;
    // The member replaces earlier ones of the same thread and kind.
    auto is_earlier = [&](const Member& other) {
        return other.kind == member.kind && other.lanes == member.lanes && !other.epoch.pending() &&
               other.epoch.with_time(0) == epoch.with_time(0);
    };
    uint32_t kept = 0;
    bool still_pending = epoch.pending();
    for (uint32_t i = 0; i < members->count; ++i) {
        if (i == number || is_earlier(members->list[i])) continue;
        still_pending = still_pending || members->list[i].epoch.pending();
        members->list[kept++] = members->list[i];
    }
    members->list[kept++] = member;
    members->count = kept;
    members->reads = cell.reads = epoch_of_list(epoch, still_pending).with_atomic(atomic);
}

unsigned kinds_of(const ShadowCell& cell) {
    const ReaderSet* members = members_of(cell);
    if (!members) return kind_of(cell);
    unsigned kinds = 0;
    for (uint32_t i = 0; i < members->count; ++i) kinds |= members->list[i].kind;
    return kinds;
}

bool find_unordered(const ThreadState& thread, const ReaderSet& members, unsigned kinds, const void* variable,
                    Member* found_member) {
    bool found = false;
    for (uint32_t i = 0; i < members.count; ++i) {
        const Member& member = members.list[i];
        if (!(member.kind & kinds)) continue;
        if (ordered_by_barrier(thread, member.epoch.serial(), member.epoch.time())) continue;
        bool near = member.epoch.serial() == thread.block->serial && member.epoch.warp() == thread.warp->warp->index;
        if (found && near) continue;
        if (!member.lanes) {
            if (ordered(thread, member.epoch.with_sharing(one_lane), variable)) continue;
            *found_member = member;
            found = true;
        }
        unsigned first = member.epoch.warp() * lanes_per_warp;
        for (uint32_t rest = member.lanes; rest; rest &= rest - 1) {
            unsigned other = first + static_cast<unsigned>(__builtin_ctz(rest));
            Epoch one = member.epoch.with_thread(other).with_sharing(one_lane);
            if (ordered(thread, one, variable)) continue;
            *found_member = {one, member.lanes, member.site, member.kind};
            found = true;
            break;
        }
        // Report a member of the thread's own warp only if no unordered member is in another warp: a barrier that
        // orders the other warps also orders the own warp.
        if (found && !near) return true;
    }
    return found;
}

void forget_members() {
    for (uint32_t number = 0; number < used; ++number) {
        ReaderSet& record = chunks[number / chunk_records][number % chunk_records];
        if (record.list != record.own) free(record.list);
    }
    // The first chunk is kept for the next launch.
    for (uint32_t chunk = 1; chunk < max_chunks && chunks[chunk]; ++chunk) {
        free(chunks[chunk]);
        chunks[chunk] = nullptr;
    }
    used = 0;
}

}  // namespace sim::checks
