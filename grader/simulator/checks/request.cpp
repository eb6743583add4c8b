// How wavefronts are counted, and how far that has been measured.
//
// Against Nsight Compute on an H200, pattern by pattern (lessons/can_i_believe_this/shared_patterns_h200.json, which
// tests/gpu/shared_patterns.py records): reads and writes of 4, 8 and 16 bytes, with some lanes inactive and addresses at random,
// agree to the last wavefront. Whole kernels are in counters_h200.json beside it. Not measured are atomic operations on shared
// memory: each wavefront serves one lane of each bank, as lanes that change the same word must take turns too. For an addition
// that the hardware makes of a loop with compare-and-swap (float, half) that is the least.
#include "checks/request.h"

#include "checks/state.h"
#include "sim/architectures.h"

namespace sim::checks {

namespace {

constexpr unsigned banks = simulated.banks;

// Wavefronts of some lanes of a request that are served together: as many as the busiest bank has distinct words.
unsigned wavefronts(NumberSet& seen, const Request& request, unsigned size_log2, unsigned first, unsigned last,
                    unsigned* words) {
    uint8_t load[banks] = {};
    unsigned most = 0;
    seen.clear();
    unsigned words_each = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
    for (unsigned i = first; i < last; ++i) {
        uint32_t word = size_log2 > 2 ? request.entry[i] << (size_log2 - 2) : request.entry[i] >> (2 - size_log2);
        for (unsigned w = 0; w < words_each; ++w) {
            if (!seen.add(word + w)) continue;
            ++*words;
            unsigned bank = (word + w) % banks;
            if (++load[bank] > most) most = load[bank];
        }
    }
    return most;
}

// Each active lane reads the same as its neighbour at this distance, or that one is not active.
bool neighbours_agree(const Request& request, unsigned distance) {
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

// 8-byte accesses are served by half warps, 16-byte accesses by quarter warps; two neighbouring ones together where they are
// reads and neighbours agree in the whole warp. `parts`: how many of them have active lanes.
unsigned shared_wavefronts(NumberSet& seen, const Request& request, unsigned size_log2, bool write, unsigned* words,
                           unsigned* parts) {
    unsigned lanes = size_log2 < 3 ? 32 : size_log2 == 3 ? 16 : 8, sum = 0;
    if (lanes < 32 && !write && (neighbours_agree(request, 1) || neighbours_agree(request, 2))) lanes *= 2;
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

// Ideal is what cannot be helped: 32 words at a time, and lanes that change the same word one after the other.
void RequestCounter::count_shared_atomic(const Request& request) {
    unsigned size_log2 = site_.size_log2, words_each = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
    unsigned load[banks] = {}, wavefronts = 0, same_word = 0;
    for (unsigned i = 0; i < request.count; ++i) {
        uint32_t word = size_log2 > 2 ? request.entry[i] << (size_log2 - 2) : request.entry[i] >> (2 - size_log2);
        unsigned before = 0;
        for (unsigned other = 0; other < i; ++other)
            before += size_log2 > 2 ? request.entry[other] == request.entry[i]
                                    : request.entry[other] >> (2 - size_log2) == word;
        if (before + 1 > same_word) same_word = before + 1;
        for (unsigned w = 0; w < words_each; ++w) {
            unsigned lanes = ++load[(word + w) % banks];
            if (lanes > wavefronts) wavefronts = lanes;
        }
    }
    unsigned ideal = (request.count * words_each + banks - 1) / banks;
    if (ideal < same_word) ideal = same_word;
    counters_.bytes += uint64_t(distinct(request)) << size_log2;
    counters_.wavefronts += wavefronts;
    counters_.ideal_wavefronts += ideal;
    unsigned ways = (wavefronts + ideal - 1) / ideal;
    if (ways > counters_.worst_ways) counters_.worst_ways = ways;
}

void RequestCounter::count_shared(const Request& request) {
    if (site_.access == Access::atomic) return count_shared_atomic(request);
    unsigned words = 0, wavefronts;
    unsigned size_log2 = site_.size_log2;
    bool write = is_write(site_.access);
    // 16-byte reads of lanes in both halves of a warp take two wavefronts, even if all want the same.
    unsigned least = size_log2 > 3 && request.lane[0] < 16 && request.lane[request.count - 1] >= 16 ? 2 : 1;
    if (request.even && request.step == 0 && has_formula(request.count, 0)) {
        wavefronts = least;
        words = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
        counters_.bytes += 1u << size_log2;
    } else if (request.even && size_log2 == 2) {
        // Lanes at one distance d hit 32 / gcd(d, 32) banks in turn.
        unsigned step = static_cast<unsigned>(request.step < 0 ? -request.step : request.step);
        unsigned used = step & 31 ? banks >> __builtin_ctz(step & 31) : 1;
        wavefronts = (request.count + used - 1) / used;
        words = request.count;
        counters_.bytes += 4u * words;
    } else if (request.even && has_formula(request.count, request.step)) {
        // Side by side: 8-byte accesses in two halves, 16-byte accesses in four quarters.
        wavefronts = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
        uint64_t first = uint64_t(request.entry[0]) << size_log2, bytes = uint64_t(request.count) << size_log2;
        words = static_cast<unsigned>(((first + bytes - 1) >> 2) - (first >> 2) + 1);
        counters_.bytes += bytes;
    } else {
        unsigned parts = 0;
        wavefronts = shared_wavefronts(seen_, request, size_log2, write, &words, &parts);
        if (write && parts > least) least = parts;
        counters_.bytes += uint64_t(distinct(request)) << size_log2;
    }
    unsigned ideal = (words + banks - 1) / banks;
    if (ideal < least) ideal = least;
    if (ideal > wavefronts) ideal = wavefronts;
    counters_.wavefronts += wavefronts;
    counters_.ideal_wavefronts += ideal;
    unsigned ways = (wavefronts + ideal - 1) / ideal;
    if (ways > counters_.worst_ways) counters_.worst_ways = ways;
}

void RequestCounter::count_global(const Request& request) {
    unsigned size_log2 = site_.size_log2;
    unsigned to_sector = sector_shift - size_log2;
    unsigned sectors = 0;
    bool write = is_write(site_.access) || site_.access == Access::atomic;
    auto touch = [&](uint32_t sector) { touched_.touch(write, sector, sector); };
    if (request.even) {
        uint32_t a = request.entry[0], b = a + static_cast<uint32_t>(request.step) * (request.count - 1);
        uint32_t low = (a < b ? a : b) >> to_sector, high = (a < b ? b : a) >> to_sector;
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
    counters_.ideal_sectors += ideal < sectors ? ideal : sectors;
    counters_.bytes += uint64_t(distinct(request)) << size_log2;
}

}  // namespace sim::checks
