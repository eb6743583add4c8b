// Tests of stream clocks. A lane is a sequence of operations that run in order; for each lane, a clock stores the last
// operation that is known to have finished.
#include "runtime/clock.h"

#include "unit.h"

using sim::Clock;

CASE(clock_covers_raised_entries_and_all_before) {
    Clock clock;
    CHECK(clock.covers(7, 0));
    CHECK(!clock.covers(7, 1));
    clock.raise(7, 3);
    CHECK(clock.covers(7, 1) && clock.covers(7, 3) && !clock.covers(7, 4));
    CHECK(!clock.covers(6, 1) && !clock.covers(8, 1));
    clock.raise(7, 2);  // clocks never decrease
    CHECK_EQUAL(clock.at(7), 3);
}

CASE(join_covers_both_clocks_and_nothing_else) {
    for (uint32_t left = 0; left < 3; ++left) {
        for (uint32_t right = 0; right < 3; ++right) {
            Clock a, b;
            a.raise(0, left);
            a.raise(1, 2);
            b.raise(0, right);
            b.raise(40, 5);
            Clock joined = a;
            joined.join(b);
            CHECK(joined.covers(a) && joined.covers(b));
            CHECK_EQUAL(joined.at(0), left > right ? left : right);
            CHECK_EQUAL(joined.at(1), 2);
            CHECK_EQUAL(joined.at(40), 5);
            CHECK_EQUAL(joined.at(39), 0);
            CHECK_EQUAL(a.at(40), 0);  // the join did not change the original
            CHECK(a.covers(b) == false);
        }
    }
}

CASE(cleared_clock_is_empty_when_it_grows_again) {
    Clock clock;
    clock.raise(3, 9);
    clock.clear();
    clock.raise(5, 1);
    CHECK_EQUAL(clock.at(3), 0);
    CHECK_EQUAL(clock.at(5), 1);
}
