// Tests of vector clocks: joins, and acquire and release through an atomic variable.
#include "checks/synchronization/order.h"

#include "seed.h"
#include "unit.h"

using namespace sim::checks;

namespace {

constexpr uint32_t own = 9, other = 4;  // serial numbers of two blocks
Pool pool;
const int variable = 0;

struct Entry {
    unsigned warp, lane;
};
constexpr Entry entries[] = {{0, 0}, {0, 31}, {5, 7}};
constexpr unsigned times = 3;  // each of three entries has time 0, 1 or 2: 27 clocks
constexpr unsigned clock_count = times * times * times;

const VectorClock* clock_number(unsigned number) {
    VectorClockBuilder builder(pool, own);
    for (Entry entry : entries) {
        if (number % times) builder.add_lane(entry.warp, entry.lane, number % times);
        number /= times;
    }
    return builder.finish();
}

// The inverse of clock_number: returns the number of the clock that covers the same accesses as `clock`.
unsigned number_of(const VectorClock* clock) {
    unsigned number = 0;
    for (unsigned i = 3; i-- > 0;) {
        unsigned thread = entries[i].warp * 32 + entries[i].lane, time = 0;
        while (time + 1 < times && covers(clock, own, thread, time + 1)) ++time;
        number = number * times + time;
    }
    return number;
}

const VectorClock* join(const VectorClock* a, const VectorClock* b) {
    VectorClockBuilder builder(pool, own);
    builder.add(a);
    builder.add(b);
    return builder.finish();
}

unsigned greatest_of_each(unsigned a, unsigned b) {
    unsigned result = 0;
    for (unsigned place = 1; place < clock_count; place *= times) {
        unsigned x = a / place % times, y = b / place % times;
        result += (x > y ? x : y) * place;
    }
    return result;
}

Release release_of(unsigned thread, uint32_t time, uint32_t serial = other) {
    return {serial, time, 0, 0, static_cast<uint16_t>(thread), sim::Scope::device, nullptr};
}

const VectorClock* knowing(SyncLog& log, uint32_t length, uint32_t serial = own,
                           sim::Scope scope = sim::Scope::device) {
    VectorClockBuilder builder(pool, serial);
    builder.add_log(&log, length, scope);
    return builder.finish();
}

bool knows(const VectorClock* clock, unsigned thread, uint32_t time) { return covers(clock, other, thread, time); }

}  // namespace

CASE(clock_covers_added_entries_and_no_others) {
    for (unsigned number = 0; number < clock_count; ++number) CHECK_EQUAL(number_of(clock_number(number)), number);
    CHECK(!clock_number(0));  // clock 0 covers nothing, so it is null
    const VectorClock* all = clock_number(clock_count - 1);
    CHECK(!covers(all, own, 1, 1) && !covers(all, own, 5 * 32 + 8, 1) && !covers(all, other, 0, 1));
    CHECK(!covers(all, own, 0, Epoch::time_pending));
}

CASE(join_takes_the_maximum_of_each_entry) {
    for (unsigned a = 0; a < clock_count; ++a)
        for (unsigned b = 0; b < clock_count; ++b)
            CHECK_EQUAL(number_of(join(clock_number(a), clock_number(b))), greatest_of_each(a, b));
    pool.clear();
}

CASE(joins_are_associative_commutative_and_idempotent) {
    const VectorClock* clocks[clock_count];
    for (unsigned a = 0; a < clock_count; ++a) clocks[a] = clock_number(a);
    for (unsigned a = 0; a < clock_count; ++a) {
        CHECK_EQUAL(number_of(join(clocks[a], clocks[a])), a);
        for (unsigned b = 0; b < clock_count; ++b) {
            const VectorClock* both = join(clocks[a], clocks[b]);
            CHECK_EQUAL(number_of(both), number_of(join(clocks[b], clocks[a])));
            CHECK_EQUAL(number_of(join(both, clocks[a])), number_of(both));
            for (unsigned c = 0; c < clock_count; c += 5)
                CHECK_EQUAL(number_of(join(both, clocks[c])), number_of(join(clocks[a], join(clocks[b], clocks[c]))));
        }
    }
    pool.clear();
}

CASE(clocks_of_many_threads_join_in_any_order) {
    unit::Random random(3);
    for (unsigned turn = 0; turn < 50; ++turn) {
        uint32_t greatest[64] = {};
        VectorClockBuilder forward(pool, own), backward(pool, own);
        const VectorClock* parts[10];
        for (const VectorClock*& part : parts) {
            VectorClockBuilder builder(pool, own);
            for (unsigned i = 0; i < 20; ++i) {
                unsigned thread = random.below(64);
                uint32_t time = 1 + random.below(1000);
                builder.add_lane(thread / 32, thread % 32, time);
                if (greatest[thread] < time) greatest[thread] = time;
            }
            part = builder.finish();
        }
        for (unsigned i = 0; i < 10; ++i) forward.add(parts[i]), backward.add(parts[9 - i]);
        for (const VectorClock* clock : {forward.finish(), backward.finish()}) {
            for (unsigned thread = 0; thread < 64; ++thread) {
                CHECK(greatest[thread] == 0 || covers(clock, own, thread, greatest[thread]));
                CHECK(!covers(clock, own, thread, greatest[thread] + 1));
            }
        }
    }
    pool.clear();
}

CASE(times_of_another_block_are_not_joined) {
    VectorClockBuilder foreign(pool, other), builder(pool, own);
    foreign.add_lane(0, 0, 5);
    builder.add(foreign.finish());
    CHECK(!builder.finish());
}

CASE(block_barrier_leaves_only_the_logs) {
    SyncLog log(&variable);
    VectorClockBuilder builder(pool, own);
    builder.add_lane(0, 0, 5);
    builder.add_log(&log, 1);
    const VectorClock* clock = builder.finish(false);
    CHECK(clock->warp_mask == 0 && clock->log_count == 1);
}

CASE(release_covers_its_threads_accesses_up_to_its_time) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    log.append(&release, sim::Scope::device, 40, 8);
    const VectorClock* clock = knowing(log, 1);
    CHECK(knows(clock, 40, 7) && knows(clock, 40, 1) && !knows(clock, 40, 8) && !knows(clock, 41, 1));
    CHECK(!covers(clock, own, 40, 7) && !knows(nullptr, 40, 7));
    CHECK(!knows(clock, 40, Epoch::time_pending));
    // The clock covers the releasing operation on the variable itself.
    CHECK(covers(clock, other, 40, 8, &variable) && !covers(clock, other, 40, 9, &variable));
}

CASE(release_covers_accesses_that_barriers_ordered_before_it) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    release.barrier_time = 3;  // the release covers all threads' accesses up to that time
    release.warp_time = 5;     // and those of threads 32 to 63 up to that time
    log.append(&release, sim::Scope::device, 40, 8);
    const VectorClock* clock = knowing(log, 1);
    CHECK(knows(clock, 0, 2) && !knows(clock, 0, 3));
    CHECK(knows(clock, 33, 4) && !knows(clock, 33, 5) && !knows(clock, 64, 4));
    CHECK_EQUAL(known_barrier(clock, other), 3);
    CHECK_EQUAL(known_barrier(clock, own), 0);
    CHECK_EQUAL(known_barrier(nullptr, other), 0);
}

CASE(log_prefix_excludes_later_releases) {
    SyncLog log(&variable);
    Release releases[5];
    for (uint32_t i = 0; i < 5; ++i) {
        releases[i] = release_of(i, 10 + i, other + i % 2);
        log.append(&releases[i], sim::Scope::device, i, 20);
    }
    CHECK_EQUAL(log.length(), 5);
    for (uint32_t length = 0; length <= 5; ++length) {
        const VectorClock* clock = knowing(log, length);
        for (uint32_t i = 0; i < 5; ++i) CHECK_EQUAL(covers(clock, other + i % 2, i, 10 + i), i < length);
    }
    // The longer of two prefixes subsumes the shorter, in either order.
    CHECK(knows(join(knowing(log, 1), knowing(log, 5)), 4, 14) && knows(join(knowing(log, 5), knowing(log, 1)), 4, 14));
}

CASE(same_release_twice_is_one_log_entry) {
    SyncLog log(&variable);
    Release release = release_of(1, 2);
    log.append(&release, sim::Scope::device, 1, 3);
    log.append(&release, sim::Scope::device, 1, 3);
    CHECK_EQUAL(log.length(), 1);
    log.append(&release, sim::Scope::device, 1, 4);
    CHECK_EQUAL(log.length(), 2);
}

CASE(release_of_block_scope_reaches_no_other_block) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    release.scope = sim::Scope::block;
    log.append(&release, sim::Scope::device, 40, 8);
    CHECK(!knows(knowing(log, 1), 40, 7));
    CHECK(knows(knowing(log, 1, other), 40, 7));
}

CASE(release_through_a_block_scope_operation_reaches_no_other_block) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    log.append(&release, sim::Scope::block, 40, 8);
    CHECK(!knows(knowing(log, 1), 40, 7));
    CHECK(knows(knowing(log, 1, other), 40, 7));
}

CASE(acquire_of_block_scope_reaches_no_other_block) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    log.append(&release, sim::Scope::device, 40, 8);
    const VectorClock* narrow = knowing(log, 1, own, sim::Scope::block);
    CHECK(!knows(narrow, 40, 7) && knows(knowing(log, 1, other, sim::Scope::block), 40, 7));
    CHECK(knows(join(narrow, knowing(log, 1)), 40, 7) && knows(join(knowing(log, 1), narrow), 40, 7));
}

CASE(fence_acquires_within_its_own_scope) {
    SyncLog log(&variable);
    Release release = release_of(40, 7);
    log.append(&release, sim::Scope::device, 40, 8);
    for (auto scope : {sim::Scope::block, sim::Scope::device}) {
        VectorClockBuilder taken(pool, own), left(pool, own);
        taken.add_logs(knowing(log, 1), scope);
        left.add_wider_logs(knowing(log, 1), scope);
        CHECK_EQUAL(knows(taken.finish(), 40, 7), scope == sim::Scope::device);
        CHECK_EQUAL(knows(left.finish(), 40, 7), scope == sim::Scope::block);
    }
}

CASE(wide_release_passes_on_a_narrow_acquire) {
    // A value goes from thread 40 to thread 70 of the same block, then to another block, through one variable or two.
    for (bool two : {false, true}) {
        SyncLog first(&variable), second(&variable);
        SyncLog& log = two ? second : first;
        Release start = release_of(40, 7);
        first.append(&start, sim::Scope::block, 40, 8);
        Release next = release_of(70, 9);
        next.known = knowing(first, 1, other);
        log.append(&next, sim::Scope::device, 70, 10);
        CHECK(knows(knowing(log, log.length()), 40, 7) && !knows(knowing(log, log.length()), 40, 8));
        CHECK(!knows(knowing(first, 1), 40, 7));
    }
}

CASE(new_log_repeats_earlier_releases_of_its_thread) {
    SyncLog before(&variable), after(&variable);
    Release mine = release_of(40, 7), theirs = release_of(41, 7);
    before.append(&mine, sim::Scope::device, 40, 8);
    before.append(&theirs, sim::Scope::device, 41, 8);
    after.append_own(before, other, 40);
    CHECK_EQUAL(after.length(), 1);
    CHECK(knows(knowing(after, 1), 40, 7) && !knows(knowing(after, 1), 41, 7));
}

CASE(release_passes_on_what_its_thread_acquired) {
    SyncLog first(&variable), second(&variable), third(&variable);
    Release start = release_of(3, 5);
    first.append(&start, sim::Scope::device, 3, 6);
    Release middle = release_of(70, 2, 6);
    middle.known = knowing(first, 1);
    second.append(&middle, sim::Scope::device, 70, 3);
    Release last = release_of(80, 2, 7);
    last.known = knowing(second, 1);
    third.append(&last, sim::Scope::device, 80, 3);
    const VectorClock* clock = knowing(third, 1);
    CHECK(knows(clock, 3, 5) && !knows(clock, 3, 6) && covers(clock, 6, 70, 2) && covers(clock, 7, 80, 2));
    // A clock that knows only the part of the log before the release does not cover the release's accesses.
    SyncLog later(&variable);
    Release nothing = release_of(90, 1, 8);
    later.append(&nothing, sim::Scope::device, 90, 2);
    later.append(&middle, sim::Scope::device, 70, 3);
    CHECK(knows(knowing(later, 2), 3, 5) && !knows(knowing(later, 1), 3, 5));
}

CASE(each_warp_has_its_own_row) {
    VectorClockBuilder some(pool, own), builder(pool, own);
    some.add_lane(0, 0, 1);
    some.add_lane(5, 0, 2);
    builder.add_lane(1, 0, 1);
    builder.add(some.finish());
    const VectorClock* clock = builder.finish();
    CHECK(covers(clock, own, 32, 1) && !covers(clock, own, 32, 2) && covers(clock, own, 160, 2));
}
