// Counts the wavefronts of shared-memory requests.
//
// The counts were compared with Nsight Compute on an H200, for single access patterns
// (lessons/can_i_believe_this/shared_patterns_h200.json, recorded by tests/gpu/shared_patterns.py). Reads and writes of
// 4, 8 and 16 bytes agree exactly, also with inactive lanes and with random addresses. counters_h200.json in the same
// folder compares whole kernels. Atomic operations on shared
// memory were not measured. They are counted as if each wavefront served one lane per bank, because lanes that change
// the same word must take turns. For an addition that the hardware implements as a compare-and-swap loop (float, half)
// this is a lower bound.
#include "checks/counting/request.h"

#include <algorithm>

#include "checks/core/state.h"
#include "sim/architectures.h"

namespace sim::checks {

namespace {

constexpr unsigned banks = simulated.banks;

// The 4-byte words that one access touches.
struct Words {
    uint32_t first;
    unsigned count;
};
Words words_of(uint32_t entry, unsigned size_log2) {
    if (size_log2 < 2) return {entry >> (2 - size_log2), 1};
    return {entry << (size_log2 - 2), 1u << (size_log2 - 2)};
}

// Returns the number of wavefronts for lanes of a request that are served together. It is the maximum over the banks of
// the number of distinct words that the lanes access in the bank.
unsigned wavefronts(NumberSet& seen, const Request& request, unsigned size_log2, unsigned first, unsigned last,
                    unsigned* words) {
    unsigned load[banks] = {}, most = 0;
    seen.clear();
    for (unsigned i = first; i < last; ++i) {
        Words own = words_of(request.entry[i], size_log2);
        for (uint32_t word = own.first; word < own.first + own.count; ++word) {
            if (!seen.add(word)) continue;
            ++*words;
            most = std::max(most, ++load[word % banks]);
        }
    }
    return most;
}

// Returns whether each active lane reads the same address as its neighbor at this distance, or the neighbor is
// inactive.
bool neighbors_agree(const Request& request, unsigned distance) {
    uint32_t value[32];
    unsigned active = 0;
    for (unsigned i = 0; i < request.count; ++i) {
        active |= 1u << request.lane[i];
        value[request.lane[i]] = request.entry[i];
    }
    for (unsigned i = 0; i < request.count; ++i) {
        unsigned other = request.lane[i] ^ distance;
        if (active >> other & 1 && value[other] != request.entry[i]) return false;
    }
    return true;
}

// Returns the wavefronts of a request. 8-byte accesses are served by half warps, 16-byte accesses by quarter warps. Two
// adjacent parts (half or quarter warps) of a read are served together if neighbors_agree() returns true for the whole
// warp. *parts is incremented for each part with active lanes.
unsigned shared_wavefronts(NumberSet& seen, const Request& request, unsigned size_log2, bool write, unsigned* words,
                           unsigned* parts) {
    unsigned lanes = size_log2 < 3 ? 32 : size_log2 == 3 ? 16 : 8, sum = 0;
    if (lanes < 32 && !write && (neighbors_agree(request, 1) || neighbors_agree(request, 2))) lanes *= 2;
    for (unsigned first = 0, last; first < request.count; first = last) {
        unsigned part = request.lane[first] / lanes;
        for (last = first; last < request.count && request.lane[last] / lanes == part;) ++last;
        sum += wavefronts(seen, request, size_log2, first, last, words);
        ++*parts;
    }
    return sum;
}

}  // namespace

RequestCounter::RequestCounter(AccessSite& site, WorkerState& worker)
    : site_(site), counters_(site.counters), touched_(*worker.sectors), seen_(*worker.numbers) {
    in_arena_ = site.origin == reinterpret_cast<uintptr_t>(arena_range().base);
}

void RequestCounter::count(const Request& request) {
    counters_.accesses += request.count;
    ++counters_.requests;
    if (site_.space == Space::shared)
        count_shared(request);
    else if (site_.space == Space::global)
        count_global(request);
    else
        counters_.bytes += uint64_t(distinct(request)) << site_.size_log2;
}

unsigned RequestCounter::distinct(const Request& request) {
    if (request.even) return request.step == 0 ? 1 : request.count;
    unsigned count = 0;
    seen_.clear();
    for (unsigned i = 0; i < request.count; ++i) count += seen_.add(request.entry[i]);
    return count;
}

// The ideal number of wavefronts: at most 32 words in each, and lanes that change the same word take turns.
void RequestCounter::count_shared_atomic(const Request& request) {
    unsigned size_log2 = site_.size_log2, words = 0;
    unsigned load[banks] = {}, wavefronts = 0, same_word = 0;
    for (unsigned i = 0; i < request.count; ++i) {
        Words own = words_of(request.entry[i], size_log2);
        words += own.count;
        unsigned same = 0;
        for (unsigned other = 0; other <= i; ++other)
            same += words_of(request.entry[other], size_log2).first == own.first;
        same_word = std::max(same_word, same);
        for (unsigned w = 0; w < own.count; ++w) wavefronts = std::max(wavefronts, ++load[(own.first + w) % banks]);
    }
    unsigned ideal = std::max((words + banks - 1) / banks, same_word);
    counters_.bytes += uint64_t(distinct(request)) << size_log2;
    counters_.wavefronts += wavefronts;
    counters_.ideal_wavefronts += ideal;
    counters_.worst_ways = std::max(counters_.worst_ways, (wavefronts + ideal - 1) / ideal);
}

void RequestCounter::count_shared(const Request& request) {
    if (site_.access == Access::atomic) return count_shared_atomic(request);
    unsigned words = 0, wavefronts;
    unsigned size_log2 = site_.size_log2, words_each = words_of(0, size_log2).count;
    bool write = is_write(site_.access);
    // 16-byte reads of lanes in both halves of a warp take two wavefronts, even of the same address.
    unsigned least = size_log2 > 3 && request.lane[0] < 16 && request.lane[request.count - 1] >= 16 ? 2 : 1;
    if (request.even && request.step == 0 && has_formula(request.count, 0)) {
        wavefronts = least;
        words = words_each;
        counters_.bytes += 1u << size_log2;
    } else if (request.even && size_log2 == 2) {
        // With a constant distance of d words between lanes, the request uses 32 / gcd(d, 32) banks.
        unsigned step = static_cast<unsigned>(request.step < 0 ? -request.step : request.step);
        unsigned used = step & 31 ? banks >> __builtin_ctz(step & 31) : 1;
        wavefronts = (request.count + used - 1) / used;
        words = request.count;
        counters_.bytes += 4u * words;
    } else if (request.even && has_formula(request.count, request.step)) {
        // The accesses are contiguous: 8-byte accesses take one wavefront per half warp, 16-byte ones one per quarter
        // warp.
        wavefronts = words_each;
        words = request.count * words_each;  // an upper bound: small accesses may share words
        counters_.bytes += uint64_t(request.count) << size_log2;
    } else {
        unsigned parts = 0;
        wavefronts = shared_wavefronts(seen_, request, size_log2, write, &words, &parts);
        if (write) least = std::max(least, parts);
        counters_.bytes += uint64_t(distinct(request)) << size_log2;
    }
    unsigned ideal = std::min(std::max((words + banks - 1) / banks, least), wavefronts);
    counters_.wavefronts += wavefronts;
    counters_.ideal_wavefronts += ideal;
    counters_.worst_ways = std::max(counters_.worst_ways, (wavefronts + ideal - 1) / ideal);
}

void RequestCounter::count_global(const Request& request) {
    unsigned size_log2 = site_.size_log2;
    unsigned to_sector = sector_shift - size_log2;
    unsigned sectors = 0;
    bool write = is_write(site_.access) || site_.access == Access::atomic;
    auto touch = [&](uint32_t sector) { touched_.touch(write, sector, sector); };
    if (request.even) {
        uint32_t a = request.entry[0], b = a + static_cast<uint32_t>(request.step) * (request.count - 1);
        uint32_t low = std::min(a, b) >> to_sector, high = std::max(a, b) >> to_sector;
        unsigned step = static_cast<unsigned>(request.step < 0 ? -request.step : request.step);
        if (uint64_t(step) << size_log2 <= 32) {
            sectors = high - low + 1;
            if (in_arena_) touched_.touch(write, low, high);
        } else {
            sectors = request.count;
            if (in_arena_)
                for (unsigned i = 0; i < request.count; ++i)
                    touch((a + static_cast<uint32_t>(request.step) * i) >> to_sector);
        }
    } else {
        seen_.clear();
        uint32_t last = ~0u;
        for (unsigned i = 0; i < request.count; ++i) {
            uint32_t sector = request.entry[i] >> to_sector;
            if (sector == last || !seen_.add(last = sector)) continue;
            ++sectors;
            if (in_arena_) touch(sector);
        }
    }
    unsigned ideal = ((request.count << size_log2) + 31) >> sector_shift;
    counters_.sectors += sectors;
    counters_.ideal_sectors += std::min(ideal, sectors);
    counters_.bytes += uint64_t(distinct(request)) << size_log2;
}

// Nsight Compute's sectors of cp.async on an H200 (tests/simulator/test_async_copies.py): a copy through L1 counts the
// sectors of global memory, as a load does. A copy that bypasses L1 counts, for each 128-byte line of global memory, the
// sectors of shared memory to which its bytes go, if these are more. So 128 bytes whose copy starts in the middle of a
// sector of shared memory count 5 sectors.
void RequestCounter::count_destinations(const Request& request, const uint32_t* destination) {
    if (site_.space != Space::global) return;
    struct Line {
        uint32_t number;
        unsigned sources;  // a bit for each of its sectors
        unsigned destinations;
    };
    Line lines[32];
    unsigned count = 0, current = 0;
    const uint32_t origin = static_cast<uint32_t>(site_.origin >> site_.size_log2);
    seen_.clear();
    for (unsigned i = 0; i < request.count; ++i) {
        uint32_t sector = (origin + request.entry[i]) >> (sector_shift - site_.size_log2), line = sector / 4;
        if (!count || lines[current].number != line) {
            for (current = 0; current < count && lines[current].number != line;) ++current;
            if (current == count) lines[count++] = {line, 0, 0};
        }
        lines[current].sources |= 1u << sector % 4;
        // The destinations of a block differ in their lower bits, because its shared memory has less than 2^27 sectors.
        lines[current].destinations += seen_.add(current << 27 | (destination[i] & ((1u << 27) - 1)));
    }
    for (unsigned i = 0; i < count; ++i) {
        unsigned sources = static_cast<unsigned>(__builtin_popcount(lines[i].sources));
        counters_.sectors += std::max(lines[i].destinations, sources) - sources;
    }
}

}  // namespace sim::checks
