#include "checks/members.h"

#include "checks/races.h"

namespace sim::checks {

namespace {

// Records by number; a cell that has one keeps the number where it would name a second reader.
constexpr uint32_t chunk_records = 4096;
constexpr uint32_t max_chunks = 1 << 14;
Members* chunks[max_chunks];
uint32_t used = 0;
SpinLock lock;

constexpr uint16_t number_mask = 0x3fff;  // of Cell::other; Cell::other_site has the lower 16 bits

uint32_t number_of(const Cell& cell) { return uint32_t(cell.other & number_mask) << 16 | cell.other_site; }

Members* record_of(const Cell& cell) {
    if (!(cell.other & cell_listed)) return nullptr;
    uint32_t number = number_of(cell);
    if (number >= __atomic_load_n(&used, __ATOMIC_ACQUIRE)) return nullptr;
    Members& record = chunks[number / chunk_records][number % chunk_records];
    return record.cell == &cell ? &record : nullptr;  // else of an earlier launch
}

// Null when there are too many.
Members* new_record(Cell& cell) {
    Locked locked(lock);
    uint32_t number = used;
    if (number >= (uint32_t(number_mask) + 1) << 16 || number / chunk_records >= max_chunks) return nullptr;
    Members*& chunk = chunks[number / chunk_records];
    if (!chunk) chunk = static_cast<Members*>(malloc(chunk_records * sizeof(Members)));
    if (!chunk) return nullptr;
    Members& record = chunk[number % chunk_records];
    record.cell = &cell;
    record.word = never;
    record.list = record.own;
    record.count = 0;
    record.room = sizeof record.own / sizeof record.own[0];
    cell.other = static_cast<uint16_t>((cell.other & cell_block_scope) | cell_listed | number >> 16);
    cell.other_site = static_cast<uint16_t>(number);
    __atomic_store_n(&used, number + 1, __ATOMIC_RELEASE);
    return &record;
}

void push(Members& members, const Member& member) {
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

uint32_t lanes_of(Stamp set) {
    return sharing_of(set) == one_lane ? 1u << (thread_of(set) % 32) : sharing_of(set) == one_warp ? ~0u : 0;
}

// Joins a member of the same warp, or takes its place. False when there is none.
bool merge(const ThreadState& thread, Members& members, uint16_t site) {
    uint32_t lane = 1u << thread.lane;
    // Members of one block stand together as a rule; it does no harm if one warp has two of them.
    for (uint32_t i = members.count; i-- > 0;) {
        Member& member = members.list[i];
        if (serial_of(member.stamp) != thread.block->serial || !member.lanes) return false;
        if (time_of(member.stamp) < thread.block->barrier_time) {
            member = members.list[--members.count];
            continue;
        }
        if (warp_of(member.stamp) != thread.warp->warp->index) continue;
        if (time_of(member.stamp) == thread.time()) {
            member.lanes |= lane;
            return true;
        }
        if (member.lanes == lane || time_of(member.stamp) < thread.warp->sync_time) {
            member = {thread.stamp, lane, site};
            return true;
        }
        member.lanes &= ~lane;
    }
    return false;
}

}  // namespace

const Members* members_of(const Cell& cell) {
    const Members* record = record_of(cell);
    return record && record->word == cell.reads ? record : nullptr;
}

void add_member(ThreadState& thread, Cell& cell, uint16_t site, bool atomic) {
    Members* members = record_of(cell);
    if (!members || members->word != cell.reads) {
        Member first = {cell.reads & ~atomic_bit, lanes_of(cell.reads), cell.read_site};
        if (!members) members = new_record(cell);
        if (!members) return;
        members->count = 0;
        if (cell.reads != never) push(*members, first);
    }
    if (!merge(thread, *members, site)) push(*members, {thread.stamp, 1u << thread.lane, site});
    // Later than any record of an earlier barrier, and equal to no single thread's stamp.
    cell.reads = with_sharing(thread.stamp, many_blocks) | (atomic ? atomic_bit : 0);
    cell.read_site = site;
    members->word = cell.reads;
}

bool find_unordered(const ThreadState& thread, const Members& members, const void* variable, Stamp* stamp,
                    uint16_t* site) {
    for (uint32_t i = 0; i < members.count; ++i) {
        const Member& member = members.list[i];
        if (ordered_by_barrier(thread, serial_of(member.stamp), time_of(member.stamp))) continue;
        *site = member.site;
        if (!member.lanes) {
            *stamp = member.stamp;
            if (!ordered(thread, with_sharing(member.stamp, one_lane), variable)) return true;
            continue;
        }
        unsigned first = warp_of(member.stamp) * lanes_per_warp;
        for (uint32_t rest = member.lanes; rest; rest &= rest - 1) {
            unsigned other = first + static_cast<unsigned>(__builtin_ctz(rest));
            *stamp = with_sharing(with_thread(member.stamp, other), one_lane);
            if (!ordered(thread, *stamp, variable)) return true;
        }
    }
    return false;
}

void forget_members() {
    for (uint32_t number = 0; number < used; ++number) {
        Members& record = chunks[number / chunk_records][number % chunk_records];
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
