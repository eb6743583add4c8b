// Shadow memory: what racecheck and initcheck store for each granule of tracked memory.
#pragma once

#include <stdint.h>

#include "checks/core/bit_field.h"
#include "checks/core/epoch.h"

namespace sim::checks {

// The 32 bits of a shadow cell beside its epochs. Either a second reader, the last one that widened the set, for
// findings in which the first one is ordered; or the number of a reader set (reader_set.h).
class SecondReader {
    using Site = BitField<uint32_t, 0, 16>;
    using Thread = BitField<uint32_t, Site::end, 10>;
    using BeforeOthers = BitField<uint32_t, Thread::end, 2>;
    using Number = BitField<uint32_t, 0, 28>;
    using OnlyLoads = BitField<uint32_t, Number::end, 1>;
    using Synchronizes = BitField<uint32_t, OnlyLoads::end, 1>;
    using BlockScope = BitField<uint32_t, Synchronizes::end, 1>;
    using Listed = BitField<uint32_t, BlockScope::end, 1>;
    static_assert(BeforeOthers::end <= Number::end && Listed::end == 32, "the fields fill the word");

    static constexpr uint32_t flags = OnlyLoads::mask | Synchronizes::mask | BlockScope::mask;

  public:
    static constexpr uint32_t number_limit = Number::largest + 1;

    uint16_t site() const { return static_cast<uint16_t>(Site::get(word_)); }
    unsigned thread() const { return Thread::get(word_); }
    void set(uint16_t site, unsigned thread) { word_ = (word_ & flags) | Thread::make(thread) | Site::make(site); }

    // The extent of the first block's set when other blocks joined it: parallel_blocks.h.
    Sharing before_others() const { return static_cast<Sharing>(BeforeOthers::get(word_)); }
    void set_before_others(Sharing sharing) { word_ = BeforeOthers::replace(word_, sharing); }

    bool listed() const { return Listed::get(word_) != 0; }
    uint32_t number() const { return Number::get(word_); }
    void set_list(uint32_t number) { word_ = (word_ & flags) | Listed::make(1) | Number::make(number); }

    // Returns whether the atomic operations have block scope only.
    bool block_scope() const { return BlockScope::get(word_) != 0; }
    void set_block_scope(bool only_block) { word_ = BlockScope::replace(word_, only_block); }

    // Returns whether the atomic operations are loads only.
    bool only_loads() const { return OnlyLoads::get(word_) != 0; }
    void set_only_loads(bool only) { word_ = OnlyLoads::replace(word_, only); }

    // Returns whether the location is one through which threads synchronize, as long as it is allocated: volatiles.h.
    bool synchronizes() const { return Synchronizes::get(word_) != 0; }
    void set_synchronizes() { word_ |= Synchronizes::mask; }

  private:
    uint32_t word_;
};

// One granule: 4 bytes, or 2 or 1 if the kernel accesses such small pieces. FastTrack's shadow state of a variable.
struct ShadowCell {
    // last ordinary write, or an epoch older than the block when atomic operations came first; else `never`
    Epoch write;
    Epoch reads;          // reads, or atomic operations, since then that are not ordered one after another
    uint16_t write_site;  // the places of those: numbers of sites
    uint16_t read_site;
    SecondReader second;
};
static_assert(sizeof(ShadowCell) == 24,
              "shadow memory is six times the memory that it watches, in granules of 4 bytes");

}  // namespace sim::checks
