#include "checks/members.h"

#include "checks/races.h"

namespace sim::checks {

namespace {

HashMap<Members*> table;  // by the address of the cell
SpinLock lock;

Members* find(const Cell& cell) {
    if (!(cell.other & cell_listed)) return nullptr;
    Locked locked(lock);
    Members** known = table.find(reinterpret_cast<uint64_t>(&cell));
    return known && (*known)->word == cell.reads ? *known : nullptr;
}

Members& find_or_make(const Cell& cell) {
    Locked locked(lock);
    Members*& known = table.at(reinterpret_cast<uint64_t>(&cell));
    if (!known) {
        known = static_cast<Members*>(calloc(1, sizeof(Members)));
        if (!known) abort();
    }
    return *known;
}

uint32_t lanes_of(Stamp set) {
    return sharing_of(set) == one_lane ? 1u << (thread_of(set) % 32) : sharing_of(set) == one_warp ? ~0u : 0;
}

// Joins a member of the same warp, or takes its place. False when there is none.
bool merge(const ThreadState& thread, Members& members, uint16_t site) {
    constexpr size_t reach = 64;  // members of one block stand together
    uint32_t lane = 1u << thread.lane;
    size_t first = members.list.size() > reach ? members.list.size() - reach : 0;
    for (size_t i = members.list.size(); i-- > first;) {
        Member& member = members.list[i];
        if (serial_of(member.stamp) != thread.block->serial || !member.lanes) continue;
        if (time_of(member.stamp) < thread.block->barrier_time) {
            members.list.remove_unordered(i);
            continue;
        }
        if (warp_of(member.stamp) != thread.warp->warp->index) continue;
        if (time_of(member.stamp) == thread.time()) {
            member.lanes |= lane;
            return true;
        }
        bool alone = member.lanes == lane;
        if (alone || time_of(member.stamp) < thread.warp->sync_time) {
            member = {thread.stamp, lane, site};
            return true;
        }
        member.lanes &= ~lane;
    }
    return false;
}

}  // namespace

const Members* members_of(const Cell& cell) { return find(cell); }

void add_member(ThreadState& thread, Cell& cell, uint16_t site, bool atomic) {
    Members* members = find(cell);
    if (!members) {
        members = &find_or_make(cell);
        members->list.clear();
        if (cell.reads != never) members->list.push({cell.reads & ~atomic_bit, lanes_of(cell.reads), cell.read_site});
    }
    if (!merge(thread, *members, site)) members->list.push({thread.stamp, 1u << thread.lane, site});
    // Later than any record of an earlier barrier, and equal to no single thread's stamp.
    cell.reads = with_sharing(thread.stamp, many_blocks) | (atomic ? atomic_bit : 0);
    cell.read_site = site;
    cell.other |= cell_listed;
    members->word = cell.reads;
}

bool find_unordered(const ThreadState& thread, const Members& members, const void* variable, Stamp* stamp,
                    uint16_t* site) {
    for (const Member& member : members.list) {
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
    table.each([](uint64_t, Members*& members) {
        members->~Members();
        free(members);
    });
    table.clear();
}

}  // namespace sim::checks
