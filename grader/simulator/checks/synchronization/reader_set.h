// Sets of unordered readers (or atomic operations) of one shadow cell, member by member.
//
// A cell itself stores only the extent of such a set: one lane, one warp, one block, or more. That is enough while only
// whole-block and whole-warp barriers order accesses. Once a kernel uses a fence, a named barrier or a partial
// __syncwarp, a writer may be ordered after some members and not after others, so all of them must be known.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

// The kinds of members. Kinds are bits, so their sum is a set of kinds. An access conflicts with these kinds only:
//   - An atomic load conflicts with no member.
//   - An atomic store conflicts with ordinary reads.
//   - An ordinary read conflicts with atomic stores.
//   - An ordinary write conflicts with all members.
enum Kind : uint8_t { ordinary_read = 1, atomic_load = 2, atomic_store = 4, every_kind = 7 };

struct Member {
    Epoch epoch;  // epoch of one lane; the other lanes have the same time
    // Mask of the lanes of the warp that are members. 0: the epoch was taken from a cell, and its `sharing` gives the
    // extent of the readers.
    uint32_t lanes;
    uint16_t site;
    Kind kind;
};

// The list of a set's members. `list` points to `own` while the set has at most four members.
struct ReaderSet {
    const ShadowCell* cell;
    Epoch reads;  // the cell's `reads` at the last change; if they differ now, the record is out of date
    Member* list;
    uint32_t count;
    uint32_t room;
    Member own[4];
};

// Returns the members of the cell's set, or null if the cell's epoch alone describes the set.
const ReaderSet* members_of(const ShadowCell& cell);
void add_member(ThreadState& thread, ShadowCell& cell, uint16_t site, Kind kind);
// Adds the read of a copy in a stream, which counts as a thread of its own.
void add_member(ShadowCell& cell, Epoch epoch, uint16_t site);
// Gives a cell that was split off another one a set of its own.
void copy_members(const ReaderSet& members, ShadowCell& cell);
// Removes the members of a kind from the cell's set.
void remove_members(ShadowCell& cell, Kind kind);
// Replaces a pending member of the cell's set (an asynchronous operation) by one with another epoch, if there is one.
void replace_pending(ShadowCell& cell, Epoch pending, Epoch epoch);
// Returns the kind of the cell's set, or the sum of the kinds of its members.
unsigned kinds_of(const ShadowCell& cell);
// Returns whether a member of one of these kinds is not ordered before the thread. If so, *found is a copy of it whose
// epoch has the unordered lane. `variable` as for ordered().
bool find_unordered(const ThreadState& thread, const ReaderSet& members, unsigned kinds, const void* variable,
                    Member* found);
void forget_members();

}  // namespace sim::checks
