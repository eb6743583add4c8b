// Collectives: lanes of one warp, or of several, synchronize; the last one computes the result for all.
//
// Each lane stores its operand in its warp and waits. The lane that completes the group computes every lane's result
// before any of them continues, so a fast lane cannot overwrite an operand that a slow one still needs.
#include "sim/warp.h"

#include <string.h>

#include "atomic_results.h"
#include "scheduler.h"
#include "sim/error_codes.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

constexpr unsigned whole_warp = ~0u;

// The value of undefined results: a NaN as a float, a conspicuous number as an integer.
constexpr uint64_t undefined_result = ~static_cast<uint64_t>(0);

// The lanes that participate in a collective. They are the lanes in `mask`, in one warp or in each of the four warps of
// a warpgroup.
struct Group {
    Warp* warps;
    unsigned count;
    unsigned mask;

    Warp* begin() const { return warps; }
    Warp* end() const { return warps + count; }
    unsigned participants(const Warp& warp) const { return mask & warp.existing & ~warp.exited; }
};

inline Group group_of(Warp& warp, Wait kind, unsigned mask) {
    if (__builtin_expect(kind != Wait::warpgroup, true)) return {&warp, 1, mask};
    unsigned first = warp.index / warps_per_group * warps_per_group;
    unsigned rest = warp.block->warp_count - first;
    return {&warp.block->warps[first], rest < warps_per_group ? rest : warps_per_group, whole_warp};
}

// Packs the kind and the place of an intrinsic into one word. It must be equal for all participating lanes.
uint64_t make_tag(Wait kind, unsigned detail, Site site) {
    return static_cast<uint64_t>(site.line) << 32 ^ static_cast<uint64_t>(site.counter & 0xffffff) << 8 ^
           static_cast<uint64_t>(detail) << 4 ^ static_cast<uint64_t>(kind);
}

Wait tag_kind(uint64_t tag) { return static_cast<Wait>(tag & 15); }

void give_all(Warp& warp, unsigned participants, uint64_t result) {
    for (unsigned rest = participants; rest; rest &= rest - 1) warp.output[__builtin_ctz(rest)] = result;
}

void finish_shuffle(Warp& warp, unsigned participants) {
    if (participants == ~0u) {
        for (unsigned lane = 0; lane < lanes_per_warp; ++lane) warp.output[lane] = warp.input[warp.argument[lane]];
        return;
    }
    for (unsigned rest = participants; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        unsigned source = warp.argument[lane];
        bool active = participants >> source & 1;
        warp.output[lane] = active ? warp.input[source] : undefined_result;
        if (!active && warp.block->checked) {
            events::sync_error(events::SyncError::shuffle_from_inactive_lane, *warp.block, &warp.threads[lane],
                               nullptr);
        }
    }
}

void finish_vote(Warp& warp, unsigned participants, Vote kind) {
    unsigned ballot = 0;
    for (unsigned rest = participants; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        ballot |= static_cast<unsigned>(warp.input[lane]) << lane;
    }
    unsigned result = ballot;
    if (kind == Vote::all) result = ballot == participants;
    if (kind == Vote::any) result = ballot != 0;
    if (kind == Vote::uniform) result = ballot == 0 || ballot == participants;
    give_all(warp, participants, result);
}

void finish_match_all(Warp& warp, unsigned participants) {
    uint64_t value = warp.input[__builtin_ctz(participants)];
    bool equal = true;
    for (unsigned rest = participants; rest; rest &= rest - 1)
        equal = equal && warp.input[__builtin_ctz(rest)] == value;
    give_all(warp, participants, equal ? participants : 0);
}

void finish_match_any(Warp& warp, unsigned participants) {
    for (unsigned left = participants; left;) {
        uint64_t value = warp.input[__builtin_ctz(left)];
        unsigned same = 0;
        for (unsigned rest = left; rest; rest &= rest - 1) {
            unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
            if (warp.input[lane] == value) same |= 1u << lane;
        }
        for (unsigned rest = same; rest; rest &= rest - 1) warp.output[__builtin_ctz(rest)] = same;
        left &= ~same;
    }
}

template <typename T>
void finish_reduce_as(Warp& warp, unsigned participants, unsigned kind) {
    // In the order of Reduce.
    constexpr AtomicOp operations[] = {AtomicOp::add,     AtomicOp::min,    AtomicOp::max,
                                       AtomicOp::bit_and, AtomicOp::bit_or, AtomicOp::bit_xor};
    auto result = static_cast<uint32_t>(warp.input[__builtin_ctz(participants)]);
    for (unsigned rest = participants & (participants - 1); rest; rest &= rest - 1)
        result = integer_result<T>(operations[kind], result, static_cast<uint32_t>(warp.input[__builtin_ctz(rest)]));
    give_all(warp, participants, result);
}

// The arguments of all lanes; null for lanes that do not participate.
void finish_exchange(const Group& group, Wait kind) {
    void* arguments[warps_per_group * lanes_per_warp];
    memset(arguments, 0, group.count * lanes_per_warp * sizeof *arguments);
    uint64_t finish = 0;  // address of the function `finish`, the same in all lanes
    for (Warp& warp : group) {
        void** of_warp = arguments + (&warp - group.warps) * lanes_per_warp;
        for (unsigned rest = group.participants(warp); rest; rest &= rest - 1) {
            unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
            of_warp[lane] = reinterpret_cast<void*>(warp.input[lane]);
            finish = warp.output[lane];
        }
    }
    if (kind == Wait::warpgroup)
        reinterpret_cast<WarpgroupFinish>(finish)(group.warps, arguments);
    else
        reinterpret_cast<WarpFinish>(finish)(arguments, group.participants(*group.warps));
}

void finish(const Group& group, uint64_t tag) {
    Warp& warp = *group.warps;
    unsigned participants = group.participants(warp);
    unsigned detail = static_cast<unsigned>(tag >> 4 & 15);
    switch (tag_kind(tag)) {
        case Wait::shuffle:
            finish_shuffle(warp, participants);
            break;
        case Wait::vote:
            finish_vote(warp, participants, static_cast<Vote>(detail));
            break;
        case Wait::match:
            if (detail)
                finish_match_all(warp, participants);
            else
                finish_match_any(warp, participants);
            break;
        case Wait::reduce:
            if (detail & 8)
                finish_reduce_as<int32_t>(warp, participants, detail & 7);
            else
                finish_reduce_as<uint32_t>(warp, participants, detail);
            break;
        case Wait::exchange:
        case Wait::warpgroup:
            finish_exchange(group, tag_kind(tag));
            break;
        default:
            break;
    }
}

// Completes the collective if every lane of its group has arrived or exited.
inline bool complete(const Group& group, uint64_t tag, Thread* last) {
    for (const Warp& warp : group)
        if (group.participants(warp) & ~warp.at_collective) return false;
    uint64_t differences = 0;
    unsigned anyone = 0, other_masks = 0;
    for (Warp& warp : group) {
        unsigned participants = group.participants(warp);
        anyone |= participants;
        for (unsigned rest = participants; rest; rest &= rest - 1) {
            unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
            other_masks |= warp.mask[lane] ^ group.mask;
            differences |= warp.tag[lane] ^ tag;
        }
    }
    if (anyone == 0) return false;
    if (other_masks) return false;  // some lanes of the group wait at another mask first, and may arrive here later
    if (differences) {
        events::sync_error(events::SyncError::collectives_differ, *group.warps->block, last, nullptr);
        // If the lanes call the same intrinsic at different places, the result can still be computed. If they call
        // different intrinsics, there is no result, so the launch ends.
        if (differences & 0xff) kill_launch(cudaErrorLaunchFailure);
    }
    finish(group, tag);
    for (Warp& warp : group) {
        unsigned participants = group.participants(warp);
        if (warp.block->checked) events::warp_collective(warp, participants, tag_kind(tag) == Wait::warp_barrier);
        warp.at_collective &= ~participants;
        make_ready(warp, participants);
    }
    return true;
}

// Waits for the other lanes. The caller has stored its operand in the warp.
inline void synchronize(Thread& self, Wait kind, unsigned detail, unsigned mask, Site site, const void* address) {
    Warp& warp = *self.warp;
    unsigned lane = self.lane;
    unsigned bit = 1u << lane;
    // Lanes may arrive at different __syncwarp calls: only the mask counts.
    uint64_t tag = make_tag(kind, detail, kind == Wait::warp_barrier ? Site{0, 0} : site);
    self.state = State::waiting;
    self.wait = kind;
    self.wait_detail = static_cast<uint8_t>(detail);
    self.wait_mask = mask;
    self.wait_site = site;
    self.call_address = address;
    warp.mask[lane] = mask;
    warp.tag[lane] = tag;
    if (__builtin_expect(!(mask & bit), false)) {
        events::sync_error(events::SyncError::own_lane_not_in_mask, *self.block, &self, nullptr);
        warp.output[lane] = undefined_result;
        self.state = State::running;
        return;
    }
    warp.at_collective |= bit;
    if (complete(group_of(warp, kind, mask), tag, &self)) {
        warp.ready &= ~bit;
        self.state = State::running;
    } else {
        switch_away(self);
    }
}

// Returns the lane from which a shuffle reads. As in PTX's shfl, offsets count modulo 32, and a source outside the
// segment of `width` lanes means the lane itself.
unsigned source_lane(Shuffle kind, unsigned lane, unsigned argument, unsigned width) {
    unsigned segment = lane & ~(width - 1);
    unsigned last = segment | (width - 1);
    unsigned offset = argument & 31;
    switch (kind) {
        case Shuffle::index:
            return segment | (argument & (width - 1));
        case Shuffle::up:
            return lane < segment + offset ? lane : lane - offset;
        case Shuffle::down:
            return lane + offset > last ? lane : lane + offset;
        case Shuffle::exclusive_or:
            return (lane ^ offset) > last ? lane : lane ^ offset;
    }
    return lane;
}

void exchange(Wait kind, Site site, const char* name, unsigned mask, void* arguments, uintptr_t finish,
              const void* address, unsigned detail) {
    Thread* self = current_thread;
    if (!self) return;
    Warp& warp = *self->warp;
    warp.input[self->lane] = reinterpret_cast<uintptr_t>(arguments);
    warp.output[self->lane] = finish;
    self->wait_label = name;
    synchronize(*self, kind, detail, mask, site, address);
}

}  // namespace

void warp_barrier(Site site, unsigned mask) {
    Thread* self = current_thread;
    if (self) synchronize(*self, Wait::warp_barrier, 0, mask, site, CALLER);
}

uint64_t warp_shuffle(Site site, Shuffle kind, unsigned mask, uint64_t value, unsigned argument, unsigned width) {
    Thread* self = current_thread;
    if (!self) return value;
    Warp& warp = *self->warp;
    unsigned lane = self->lane;
    if (__builtin_expect(width > 32 || width == 0 || (width & (width - 1)), false)) width = 32;
    warp.input[lane] = value;
    warp.argument[lane] = source_lane(kind, lane, argument, width);
    synchronize(*self, Wait::shuffle, static_cast<unsigned>(kind), mask, site, CALLER);
    return warp.output[lane];
}

unsigned warp_vote(Site site, Vote kind, unsigned mask, bool predicate) {
    Thread* self = current_thread;
    if (!self) return predicate;
    self->warp->input[self->lane] = predicate;
    synchronize(*self, Wait::vote, static_cast<unsigned>(kind), mask, site, CALLER);
    return static_cast<unsigned>(self->warp->output[self->lane]);
}

unsigned warp_match_any(Site site, unsigned mask, uint64_t value) {
    Thread* self = current_thread;
    if (!self) return 1;
    self->warp->input[self->lane] = value;
    synchronize(*self, Wait::match, 0, mask, site, CALLER);
    return static_cast<unsigned>(self->warp->output[self->lane]);
}

unsigned warp_match_all(Site site, unsigned mask, uint64_t value, bool* all_equal) {
    Thread* self = current_thread;
    if (!self) return *all_equal = true;
    Warp& warp = *self->warp;
    warp.input[self->lane] = value;
    synchronize(*self, Wait::match, 1, mask, site, CALLER);
    unsigned equal = static_cast<unsigned>(warp.output[self->lane]);
    *all_equal = equal != 0;
    return equal;
}

uint32_t warp_reduce(Site site, Reduce kind, unsigned mask, uint32_t value, bool is_signed) {
    Thread* self = current_thread;
    if (!self) return value;
    self->warp->input[self->lane] = value;
    synchronize(*self, Wait::reduce, static_cast<unsigned>(kind) | (is_signed ? 8 : 0), mask, site, CALLER);
    return static_cast<uint32_t>(self->warp->output[self->lane]);
}

void warp_exchange_from(Site site, const char* name, unsigned mask, void* arguments, WarpFinish finish,
                        const void* address, unsigned detail) {
    exchange(Wait::exchange, site, name, mask, arguments, reinterpret_cast<uintptr_t>(finish), address, detail);
}

void warpgroup_exchange(Site site, const char* name, void* arguments, WarpgroupFinish finish, const void* address,
                        unsigned detail) {
    exchange(Wait::warpgroup, site, name, whole_warp, arguments, reinterpret_cast<uintptr_t>(finish), address, detail);
}

// In the simulator each lane runs on its own fiber, so lanes are not active together by themselves. To give the usual
// result of the hardware, a lane at __activemask waits until no other lane of its warp can run. All lanes that then
// wait at the same call are active together.
unsigned active_mask() {
    Thread* self = current_thread;
    if (!self) return 1;
    Warp& warp = *self->warp;
    self->state = State::waiting;
    self->wait = Wait::active_mask;
    self->call_address = CALLER;
    warp.at_active_mask |= 1u << self->lane;
    switch_away(*self);
    return static_cast<unsigned>(warp.output[self->lane]);
}

void resolve_active_mask(Warp& warp) {
    const void* place = warp.threads[__builtin_ctz(warp.at_active_mask)].call_address;
    unsigned together = 0;
    for (unsigned rest = warp.at_active_mask; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        if (warp.threads[lane].call_address == place) together |= 1u << lane;
    }
    for (unsigned rest = together; rest; rest &= rest - 1) warp.output[__builtin_ctz(rest)] = together;
    warp.at_active_mask &= ~together;
    make_ready(warp, together);
}

// Called when a lane has exited. Completes intrinsics that waited only for this lane.
void complete_collectives_after_exit(Warp& warp) {
    for (unsigned rest = warp.at_collective; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        // An earlier iteration may have completed the collective of this lane.
        if (!(warp.at_collective >> lane & 1)) continue;
        uint64_t tag = warp.tag[lane];
        complete(group_of(warp, tag_kind(tag), warp.mask[lane]), tag, &warp.threads[lane]);
    }
}

void complete_barriers_after_exit(Block& block);

void complete_after_exit(Block& block, Warp& warp) {
    if (warp.at_collective) complete_collectives_after_exit(warp);
    complete_barriers_after_exit(block);
}

}  // namespace sim
