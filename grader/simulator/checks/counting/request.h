// One request of a warp: its lanes' accesses at one place in the code at one time, and their cost.
#pragma once

#include <stdint.h>

#include "checks/core/site.h"
#include "checks/counting/touched_sectors.h"

namespace sim::checks {

struct Request {
    unsigned count;      // active lanes
    unsigned lane[32];   // numbers of the active lanes
    uint32_t entry[32];  // entries of the active lanes, in lane order
    // The entries grow by `step` from lane to lane. If has_formula(), only entry[0] and the first and last elements of
    // `lane` are set.
    bool even;
    int32_t step;
};

// A set of at most 64 numbers (the words of 16 accesses of 16 bytes). clear() only increments `round_`: entries of
// earlier rounds do not count.
class NumberSet {
  public:
    void clear() { ++round_; }
    bool add(uint32_t number) {
        unsigned i = (number * 0x9E3779B1u) >> (32 - slots_log2);
        while (slots_[i].round == round_) {
            if (slots_[i].number == number) return false;
            i = (i + 1) % slots;
        }
        slots_[i] = {round_, number};
        return true;
    }

  private:
    struct Slot {
        uint64_t round;
        uint32_t number;
    };
    static constexpr unsigned slots_log2 = 7, slots = 1u << slots_log2;  // the table is at most half full
    Slot slots_[slots];                                                  // zero bytes at first
    uint64_t round_;
};

// Adds requests to a site's counters.
class RequestCounter {
  public:
    RequestCounter(AccessSite& site, WorkerState& worker);

    // Returns whether the wavefronts and sectors of an even request follow from its first entry and its step alone.
    bool has_formula(unsigned lanes, int32_t step) const {
        if (site_.space == Space::shared && site_.access == Access::atomic) return false;
        if (site_.space != Space::shared || site_.size_log2 == 2) return true;
        if (step == 0) return site_.size_log2 < 3 || !is_write(site_.access);
        return step == 1 && (site_.size_log2 < 2 || lanes == 32);
    }
    void count(const Request& request);
    // After count() of a request of cp.async: counts the sectors that it adds because of the sectors of shared memory
    // to which it copies. `destination`: number of the sector for each active lane. `request` must have all entries.
    void count_destinations(const Request& request, const uint32_t* destination);

  private:
    unsigned distinct(const Request& request);
    void count_shared(const Request& request);
    void count_shared_atomic(const Request& request);
    void count_global(const Request& request);

    AccessSite& site_;
    Counters& counters_;
    TouchedSectors& touched_;
    NumberSet& seen_;
    bool in_arena_;
};

}  // namespace sim::checks
