// Tests of a request's sectors and wavefronts: patterns with known counts, and random ones against a reference model.
#include "checks/counting/request.h"
#include "checks/core/state.h"

#include <algorithm>

#include "seed.h"
#include "unit.h"

using namespace sim;
using namespace sim::checks;

namespace {

// Counts the sectors and wavefronts of a single request.
class Counted {
  public:
    Counted(Space space, unsigned size_log2, Access access = Access::read) {
        static NumberSet numbers;
        worker_.sectors = &touched;
        worker_.numbers = &numbers;
        site_.space = space;
        site_.access = access;
        site_.size_log2 = static_cast<uint8_t>(size_log2);
        site_.origin = 1;  // an address outside of device memory
    }
    void begin_at_the_arena() { site_.origin = reinterpret_cast<uintptr_t>(arena_range().base); }

    // Counts a request of the lanes in the mask. entry_of(lane) is a lane's offset, in units of the access size.
    template <typename F>
    Counters all(F entry_of, uint32_t lanes = ~0u) {
        Request request = {};
        for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
            if (!(lanes >> lane & 1)) continue;
            request.lane[request.count] = lane;
            request.entry[request.count++] = entry_of(lane);
        }
        request.even = request.count == 1;
        return count(request);
    }
    // Counts a request of cp.async of all lanes. entry_of(lane): the lane's source, in units of 16 bytes.
    // sector_of(lane): the sector of shared memory to which it copies.
    template <typename F, typename G>
    Counters copies(F entry_of, G sector_of) {
        uint32_t destinations[lanes_per_warp];
        Request request = {};
        request.count = lanes_per_warp;
        for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
            request.lane[lane] = lane;
            request.entry[lane] = entry_of(lane);
            destinations[lane] = sector_of(lane);
        }
        site_.counters = {};
        RequestCounter counter(site_, worker_);
        counter.count(request);
        counter.count_destinations(request, destinations);
        return site_.counters;
    }
    Counters stride(uint32_t step, uint32_t first = 0) {
        return all([=](unsigned lane) { return first + step * lane; });
    }
    // `even` counts a request whose entries have a constant stride. It uses a formula if has_formula.
    bool has_formula(unsigned lanes, int32_t step) { return RequestCounter(site_, worker_).has_formula(lanes, step); }
    Counters even(uint32_t first, int32_t step, unsigned lanes) {
        Request request = {};
        request.even = true;
        request.count = lanes;
        request.step = step;
        request.entry[0] = first;
        request.lane[lanes - 1] = lanes - 1;
        return count(request);
    }

    TouchedSectors touched = {};

  private:
    Counters count(const Request& request) {
        site_.counters = {};
        RequestCounter(site_, worker_).count(request);
        return site_.counters;
    }
    AccessSite site_ = {};
    WorkerState worker_ = {};
};

struct Pattern {
    unsigned size_log2;
    uint32_t step;  // from lane to lane, in units of the access size
    unsigned wavefronts;
};

bool equal(const Counters& a, const Counters& b) {
    return a.accesses == b.accesses && a.requests == b.requests && a.bytes == b.bytes && a.sectors == b.sectors &&
           a.ideal_sectors == b.ideal_sectors && a.wavefronts == b.wavefronts &&
           a.ideal_wavefronts == b.ideal_wavefronts && a.worst_ways == b.worst_ways;
}

}  // namespace

CASE(strides_over_banks_give_the_expected_wavefronts) {
    // clang-format off
    const Pattern patterns[] = {
        {2, 0, 1}, {2, 1, 1}, {2, 2, 2}, {2, 3, 1}, {2, 4, 4}, {2, 8, 8}, {2, 16, 16}, {2, 31, 1}, {2, 32, 32}, {2, 33, 1},
        {3, 0, 1}, {3, 1, 2}, {3, 2, 4}, {3, 16, 32}, {3, 17, 2},
        {4, 0, 2}, {4, 1, 4}, {4, 2, 8}, {4, 8, 32}, {4, 9, 4},
        {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {1, 4, 2}, {1, 64, 32},
        {0, 1, 1}, {0, 4, 1}, {0, 8, 2}, {0, 128, 32},
    };
    // clang-format on
    for (Pattern pattern : patterns) {
        Counters counters = Counted(Space::shared, pattern.size_log2).stride(pattern.step);
        CHECK_EQUAL(counters.wavefronts, pattern.wavefronts);
        CHECK_EQUAL(counters.accesses, 32);
        CHECK_EQUAL(counters.requests, 1);
        CHECK_EQUAL(counters.sectors, 0);
    }
}

CASE(lanes_with_the_same_word_share_a_wavefront) {
    Counted floats(Space::shared, 2);
    CHECK_EQUAL(floats.all([](unsigned lane) { return lane / 2; }).wavefronts, 1);
    CHECK_EQUAL(floats.all([](unsigned lane) { return 32 * (lane % 2); }).wavefronts, 2);
    CHECK_EQUAL(floats.all([](unsigned lane) { return 32 * (lane / 8); }).wavefronts, 4);
    CHECK_EQUAL(floats.all([](unsigned lane) { return 32 * (lane / 8); }).bytes, 16);
    Counted bytes(Space::shared, 0);  // four lanes access each word
    CHECK_EQUAL(bytes.all([](unsigned lane) { return lane % 4; }).wavefronts, 1);
}

CASE(wide_accesses_are_served_in_halves_and_quarters) {
    Counted pairs(Space::shared, 3), fours(Space::shared, 4);
    auto own = [](unsigned lane) { return lane; };
    CHECK_EQUAL(pairs.all(own, 0x0000ffff).wavefronts, 1);
    CHECK_EQUAL(pairs.all(own, 0xffff0000).wavefronts, 1);
    CHECK_EQUAL(fours.all(own, 0x000000ff).wavefronts, 1);
    CHECK_EQUAL(fours.all(own, 0x0000ffff).wavefronts, 2);
    CHECK_EQUAL(fours.all(own, 0x00010001).wavefronts, 2);
    // If neighboring lanes read the same word, two halves or two quarters are processed together.
    CHECK_EQUAL(pairs.all([](unsigned lane) { return lane / 2; }).wavefronts, 1);
    CHECK_EQUAL(pairs.all([](unsigned lane) { return lane % 2 + lane / 4 * 2; }).wavefronts, 1);
    // Lane 0 is inactive, so lane 1 has no partner that reads the same slot. The request still takes one wavefront.
    CHECK_EQUAL(pairs.all([](unsigned lane) { return lane / 2 + 9; }, 0xfffffffe).wavefronts, 1);
    CHECK_EQUAL(pairs.all([](unsigned lane) { return lane % 16; }).wavefronts, 2);
    CHECK_EQUAL(fours.all([](unsigned lane) { return lane / 2; }).wavefronts, 2);
    CHECK_EQUAL(fours.all([](unsigned) { return 3u; }, 0x0000ffff).wavefronts, 1);
    CHECK_EQUAL(fours.all([](unsigned) { return 3u; }).wavefronts, 2);
    // Halves take one wavefront only if all pairs of lanes in the warp read the same slot. Lanes 30 and 31 do not, so
    // both halves are processed in quarters.
    CHECK_EQUAL(fours.all([](unsigned lane) { return lane == 31 ? 40 : lane / 2; }).wavefronts, 4);
}

CASE(halves_and_quarters_of_writes_are_never_served_together) {
    Counted pairs(Space::shared, 3, Access::write), fours(Space::shared, 4, Access::write);
    auto own = [](unsigned lane) { return lane; };
    CHECK_EQUAL(pairs.all(own, 0x00010001).wavefronts, 2);
    CHECK_EQUAL(pairs.all(own, 0x00010001).ideal_wavefronts, 2);
    CHECK_EQUAL(fours.all(own, 0x01010101).wavefronts, 4);
    CHECK_EQUAL(fours.all(own, 0x01010101).worst_ways, 1);
    CHECK_EQUAL(fours.all([](unsigned) { return 3u; }).wavefronts, 4);
    CHECK_EQUAL(pairs.all(own, 0x00000001).wavefronts, 1);
    CHECK(!pairs.has_formula(32, 0) && pairs.has_formula(32, 1));
}

CASE(small_random_accesses_agree_with_a_model) {
    unit::Random random(4);
    for (unsigned turn = 0; turn < 2000; ++turn) {
        unsigned size_log2 = random.below(3), spread = 1u << random.below(12);
        uint32_t lanes = turn % 3 ? static_cast<uint32_t>(random.word()) | 1 : ~0u, entry[32];
        for (uint32_t& one : entry) one = random.below(spread);
        // The expected wavefronts: the largest number of different words in one bank.
        unsigned most = 0, words_in_all = 0;
        for (unsigned bank = 0; bank < 32; ++bank) {
            unsigned words = 0;
            for (unsigned i = 0; i < 32; ++i) {
                uint32_t word = entry[i] << size_log2 >> 2;
                bool counts = (lanes >> i & 1) && word % 32 == bank;
                for (unsigned j = 0; j < i; ++j)
                    counts = counts && !((lanes >> j & 1) && (entry[j] << size_log2 >> 2) == word);
                words += counts;
            }
            if (most < words) most = words;
            words_in_all += words;
        }
        Counters counters = Counted(Space::shared, size_log2).all([&](unsigned lane) { return entry[lane]; }, lanes);
        CHECK_EQUAL(counters.wavefronts, most);
        CHECK_EQUAL(counters.ideal_wavefronts, (words_in_all + 31) / 32);
        CHECK_EQUAL(counters.worst_ways, (most + counters.ideal_wavefronts - 1) / counters.ideal_wavefronts);
    }
}

CASE(shared_atomics_on_one_bank_take_turns) {
    unit::Random random(7);
    for (unsigned turn = 0; turn < 2000; ++turn) {
        unsigned size_log2 = random.below(4), spread = 1u << random.below(8);
        uint32_t lanes = turn % 3 ? static_cast<uint32_t>(random.word()) | 1 : ~0u, entry[32];
        for (uint32_t& one : entry) one = random.below(spread);
        // Each lane of an atomic operation needs its own wavefront in the banks that it accesses.
        unsigned load[32] = {}, most = 0, same_word = 0, distinct = 0, words = 0;
        for (unsigned i = 0; i < 32; ++i) {
            if (!(lanes >> i & 1)) continue;
            unsigned first = entry[i] << size_log2 >> 2, same = 1;
            for (unsigned word = first; word < first + (size_log2 == 3 ? 2 : 1); ++word, ++words)
                if (++load[word % 32] > most) most = load[word % 32];
            bool is_new = true;
            for (unsigned j = 0; j < i; ++j) {
                if (!(lanes >> j & 1)) continue;
                same += entry[j] << size_log2 >> 2 == first;
                is_new = is_new && entry[j] != entry[i];
            }
            if (same > same_word) same_word = same;
            distinct += is_new;
        }
        unsigned ideal = (words + 31) / 32;
        if (ideal < same_word) ideal = same_word;
        Counted counted(Space::shared, size_log2, Access::atomic);
        Counters counters = counted.all([&](unsigned lane) { return entry[lane]; }, lanes);
        CHECK_EQUAL(counters.wavefronts, most);
        CHECK_EQUAL(counters.ideal_wavefronts, ideal);
        CHECK_EQUAL(counters.worst_ways, (most + ideal - 1) / ideal);
        CHECK_EQUAL(counters.bytes, distinct << size_log2);
        CHECK(!counted.has_formula(32, 0));
    }
}

CASE(formula_agrees_with_counting_lane_by_lane) {
    unit::Random random(5);
    for (unsigned turn = 0; turn < 4000; ++turn) {
        Space space = turn % 2 ? Space::shared : Space::global;
        unsigned size_log2 = random.below(5), lanes = turn % 3 ? 32 : 2 + random.below(31);
        int32_t step = static_cast<int32_t>(random.below(turn % 5 ? 5 : 200)) - (turn % 7 ? 0 : 2);
        uint32_t first = 10000 + random.below(64);
        Counted counted(space, size_log2, turn % 11 ? Access::read : Access::write);
        if (!counted.has_formula(lanes, step)) continue;
        auto entry_of = [=](unsigned lane) { return first + static_cast<uint32_t>(step) * lane; };
        Counters slow = counted.all(entry_of, lanes == 32 ? ~0u : (1u << lanes) - 1);
        CHECK(equal(counted.even(first, step, lanes), slow));
    }
}

CASE(strides_over_sectors_give_the_expected_count) {
    // clang-format off
    const struct { unsigned size_log2; uint32_t step, first; unsigned sectors, ideal; } patterns[] = {
        {2, 0, 0, 1, 1}, {2, 1, 0, 4, 4}, {2, 1, 1, 5, 4}, {2, 1, 8, 4, 4}, {2, 2, 0, 8, 4}, {2, 8, 0, 32, 4}, {2, 32, 0, 32, 4},
        {3, 1, 0, 8, 8}, {3, 2, 0, 16, 8}, {4, 1, 0, 16, 16}, {4, 2, 0, 32, 16}, {1, 1, 0, 2, 2}, {1, 1, 1, 3, 2},
        {0, 1, 0, 1, 1}, {0, 1, 16, 2, 1}, {0, 32, 0, 32, 1},
    };
    // clang-format on
    for (auto& pattern : patterns) {
        Counters counters = Counted(Space::global, pattern.size_log2).stride(pattern.step, pattern.first);
        CHECK_EQUAL(counters.sectors, pattern.sectors);
        CHECK_EQUAL(counters.ideal_sectors, pattern.ideal);
        CHECK_EQUAL(counters.bytes, (pattern.step ? 32u : 1u) << pattern.size_log2);
        CHECK_EQUAL(counters.wavefronts, 0);
    }
}

CASE(random_accesses_count_distinct_sectors) {
    unit::Random random(6);
    for (unsigned turn = 0; turn < 1000; ++turn) {
        unsigned size_log2 = random.below(5);
        uint32_t entry[32], spread = 1u << random.below(14);
        for (uint32_t& one : entry) one = random.below(spread);
        unsigned sectors = 0, distinct = 0;
        for (unsigned i = 0; i < 32; ++i) {
            bool new_sector = true, is_new = true;
            for (unsigned j = 0; j < i; ++j) {
                new_sector = new_sector && entry[j] << size_log2 >> 5 != entry[i] << size_log2 >> 5;
                is_new = is_new && entry[j] != entry[i];
            }
            sectors += new_sector;
            distinct += is_new;
        }
        Counters counters = Counted(Space::global, size_log2).all([&](unsigned lane) { return entry[lane]; });
        CHECK_EQUAL(counters.sectors, sectors);
        CHECK_EQUAL(counters.bytes, distinct << size_log2);
    }
}

CASE(each_device_sector_of_a_request_is_marked) {
    unit::Random random(9);
    for (unsigned turn = 0; turn < 1000; ++turn) {
        const unsigned size_log2 = random.below(5), lanes = turn % 3 ? 32 : 2 + random.below(31);
        const int32_t step = static_cast<int32_t>(random.below(129)) - 64;
        const uint32_t middle = 65536u >> size_log2;
        const bool even = turn % 4, known = turn % 5;
        const Access access = turn % 2 ? Access::read : turn % 6 ? Access::write : Access::atomic;
        uint64_t bits[2][64] = {}, expected[2][64] = {};
        uint32_t entry[32];
        for (unsigned lane = 0; lane < lanes; ++lane) {
            entry[lane] = middle + (even ? static_cast<uint32_t>(step) * lane : random.below(1000));
            uint32_t sector = entry[lane] << size_log2 >> 5;
            if (known) expected[access != Access::read][sector / 64] |= uint64_t(1) << sector % 64;
        }
        Counted counted(Space::global, size_log2, access);
        counted.touched = {{bits[0], bits[1]}, 64, {64, 64}, {0, 0}};
        if (known) counted.begin_at_the_arena();
        if (even)
            counted.even(entry[0], step, lanes);
        else
            counted.all([&](unsigned lane) { return entry[lane]; }, lanes == 32 ? ~0u : (1u << lanes) - 1);
        CHECK(!memcmp(bits, expected, sizeof bits));
    }
}

CASE(async_copies_count_the_sectors_of_shared_memory_if_they_are_more) {
    Counted copies(Space::global, 4, Access::async_read);
    auto own = [](unsigned lane) { return lane; };
    CHECK_EQUAL(copies.copies(own, [](unsigned lane) { return lane / 2; }).sectors, 16);
    CHECK_EQUAL(copies.copies(own, [](unsigned lane) { return (lane + 1) / 2; }).sectors, 20);
    CHECK_EQUAL(copies.copies(own, own).sectors, 32);
    CHECK_EQUAL(copies.copies(own, [](unsigned) { return 0u; }).sectors, 16);
    // All lanes read the same sector, or a different line.
    CHECK_EQUAL(copies.copies([](unsigned lane) { return lane % 2; }, own).sectors, 32);
    CHECK_EQUAL(copies.copies([](unsigned lane) { return 8 * lane; }, [](unsigned) { return 7u; }).sectors, 32);
    unit::Random random(3);
    for (unsigned turn = 0; turn < 1000; ++turn) {
        uint32_t entries[32], sectors[32], among = 1 + random.below(64);
        for (unsigned lane = 0; lane < 32; ++lane) {
            entries[lane] = random.below(among);
            sectors[lane] = (1u << 27) - 20 + random.below(40);
        }
        unsigned expected = 0;
        for (unsigned line = 0; line < 8; ++line) {
            unsigned sources = 0;
            uint64_t destinations = 0;
            for (unsigned lane = 0; lane < 32; ++lane) {
                if (entries[lane] / 8 != line) continue;
                sources |= 1u << entries[lane] / 2 % 4;
                destinations |= uint64_t(1) << (sectors[lane] - (1u << 27) + 20);
            }
            int most = std::max(__builtin_popcount(sources), __builtin_popcountll(destinations));
            expected += static_cast<unsigned>(most);
        }
        Counters counters =
            copies.copies([&](unsigned lane) { return entries[lane]; }, [&](unsigned lane) { return sectors[lane]; });
        CHECK_EQUAL(counters.sectors, expected);
        CHECK_EQUAL(counters.requests, 1);
    }
}

CASE(touched_sectors_are_marked_in_words_of_64) {
    static uint64_t read[4], written[4];
    TouchedSectors touched = {{read, written}, 4, {4, 4}, {0, 0}};
    touched.touch(false, 60, 130);
    touched.touch(true, 5, 5);
    touched.touch(true, 300, 300);  // past the end of device memory
    for (unsigned sector = 0; sector < 256; ++sector) {
        CHECK_EQUAL(read[sector / 64] >> (sector % 64) & 1, sector >= 60 && sector <= 130);
        CHECK_EQUAL(written[sector / 64] >> (sector % 64) & 1, sector == 5);
    }
    CHECK(touched.first[0] == 0 && touched.last[0] == 2 && touched.first[1] == 0 && touched.last[1] == 0);
}
