// Tests of epochs, which pack a block's serial number, a thread and a time: fields, order and limits.
#include "checks/core/epoch.h"

#include "seed.h"
#include "unit.h"

using namespace sim::checks;

namespace {

constexpr uint32_t last_serial = Epoch::serial_limit - 1;

Epoch any(unit::Random& random) {
    return Epoch(random.below(Epoch::serial_limit), random.below(Epoch::time_limit + 1), random.below(1024))
        .with_sharing(static_cast<Sharing>(random.below(4)))
        .with_atomic(random.below(2));
}

bool same(Epoch a, Epoch b) {
    return a.serial() == b.serial() && a.time() == b.time() && a.thread() == b.thread() && a.sharing() == b.sharing() &&
           a.atomic() == b.atomic();
}

}  // namespace

CASE(epoch_returns_its_fields) {
    for (uint32_t serial : {0u, 1u, last_serial})
        for (uint32_t time : {0u, 1u, Epoch::time_limit, Epoch::time_pending})
            for (unsigned thread : {0u, 31u, 32u, 1023u}) {
                Epoch epoch(serial, time, thread);
                CHECK_EQUAL(epoch.serial(), serial);
                CHECK_EQUAL(epoch.time(), time);
                CHECK_EQUAL(epoch.thread(), thread);
                CHECK_EQUAL(epoch.warp(), thread / 32);
                CHECK_EQUAL(epoch.lane(), thread % 32);
                CHECK(!epoch.atomic() && epoch.sharing() == one_lane);
                CHECK_EQUAL(epoch.pending(), time == Epoch::time_pending);
            }
}

CASE(changing_one_field_keeps_the_others) {
    unit::Random random;
    for (unsigned i = 0; i < 1000; ++i) {
        Epoch a = any(random), b = any(random);
        Epoch time = a.with_time(b.time()), thread = a.with_thread(b.thread());
        Epoch sharing = a.with_sharing(b.sharing()), atomic = a.with_atomic(b.atomic());
        CHECK_EQUAL(time.time(), b.time());
        CHECK_EQUAL(thread.thread(), b.thread());
        CHECK_EQUAL(sharing.sharing(), b.sharing());
        CHECK_EQUAL(atomic.atomic(), b.atomic());
        CHECK(same(time.with_time(a.time()), a) && same(thread.with_thread(a.thread()), a));
        CHECK(same(sharing.with_sharing(a.sharing()), a) && same(atomic.with_atomic(a.atomic()), a));
        CHECK((a == b) == same(a, b));
    }
}

CASE(epochs_are_ordered_by_block_then_by_time) {
    unit::Random random(1);
    for (unsigned i = 0; i < 1000; ++i) {
        Epoch a = any(random), b = any(random);
        if (i % 2) b = Epoch(a.serial(), b.time() % 4, b.thread()), a = a.with_time(a.time() % 4);
        bool earlier = a.serial() != b.serial() ? a.serial() < b.serial() : a.time() < b.time();
        bool simultaneous = a.serial() == b.serial() && a.time() == b.time();
        if (!simultaneous) CHECK_EQUAL(a < b, earlier);
        CHECK_EQUAL(a.not_earlier_than(b), !earlier);
        // An epoch with b's time but without a thread is later than all epochs before b, but not later than b.
        CHECK_EQUAL(a < Epoch(b.serial(), b.time()), earlier);
        CHECK(!(b < Epoch(b.serial(), b.time())));
    }
}

CASE(host_writes_are_older_than_every_block) {
    CHECK(never < written_before && never != written_before);
    CHECK(written_before < Epoch(1, 0));
    CHECK(Epoch() == never);
}

CASE(pending_epoch_is_later_than_all_others_of_its_block) {
    Epoch pending(7, Epoch::time_pending, 0);
    CHECK(Epoch(7, Epoch::time_limit, 1023).with_sharing(many_blocks).with_atomic(true) < pending);
    CHECK(pending < Epoch(8, 0));
}

CASE(value_too_large_for_a_field_is_rejected) {
    CHECK_ABORTS(Epoch(Epoch::serial_limit, 0));
    CHECK_ABORTS(Epoch(0, Epoch::time_pending + 1));
    CHECK_ABORTS(Epoch(0, 0, 1024));
    CHECK_ABORTS(Epoch(0, 0).with_time(Epoch::time_pending + 1));
    CHECK_ABORTS(Epoch(0, 0).with_thread(1024));
    CHECK(!unit::aborts([] { (void)Epoch(last_serial, Epoch::time_pending, 1023); }));
}

CASE(epoch_range_includes_begin_and_excludes_end) {
    const Epoch some[] = {never,       written_before, Epoch(1, 0), Epoch(1, 0, 5),
                          Epoch(1, 1), Epoch(2, 0),    Epoch(2, 3), Epoch(last_serial, Epoch::time_pending, 1023)};
    for (Epoch begin : some) {
        for (Epoch end : some) {
            if (end < begin) continue;
            EpochRange range(begin, end);
            CHECK(range.begin() == begin && range.end() == end);
            for (Epoch epoch : some) CHECK_EQUAL(range.contains(epoch), !(epoch < begin) && epoch < end);
        }
    }
    CHECK_ABORTS(EpochRange(Epoch(2, 0), Epoch(1, 0)));
}

CASE(reach_tells_beyond_warp_and_atomic) {
    for (Sharing sharing : {one_lane, one_warp, one_block, many_blocks}) {
        Epoch epoch = Epoch(3, 4, 77).with_sharing(sharing);
        CHECK_EQUAL(epoch.reach() == Epoch::reach_beyond_warp(), sharing == one_block || sharing == many_blocks);
        CHECK(epoch.with_atomic(true).reach() != Epoch::reach_beyond_warp());
        CHECK(epoch.reach() != Epoch::none() && epoch.without_lane() != Epoch::none());
    }
}

CASE(lanes_of_one_warp_share_the_epoch_without_lane) {
    Epoch epoch(3, 4, 64);
    for (unsigned thread = 0; thread < 1024; ++thread)
        CHECK_EQUAL(epoch.with_thread(thread).without_lane() == epoch, thread / 32 == 2);
    CHECK(epoch.with_time(5).without_lane() != epoch && epoch.with_sharing(one_warp).without_lane() != epoch);
}
