// Shadow memory: what racecheck and initcheck store for each granule of tracked memory.
#pragma once

#include <stdint.h>

#include "checks/core/bit_field.h"
#include "checks/core/epoch.h"

namespace sim::checks {

// The 32 bits of a shadow cell beside its epochs. They hold the number of a reader set (reader_set.h), or else a second
// reader: the last thread that extended the readers to another warp or block. If the reader in `ShadowCell::reads` is
// ordered before a write, the finding about the write names the second reader.
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

    // Returns the extent of the readers (one lane, one warp, one block) before a second block read the cell.
    // parallel_blocks.h describes why.
    Sharing before_others() const { return static_cast<Sharing>(BeforeOthers::get(word_)); }
    void set_before_others(Sharing sharing) { word_ = BeforeOthers::replace(word_, sharing); }

    bool listed() const { return Listed::get(word_) != 0; }
    uint32_t number() const { return Number::get(word_); }
    void set_list(uint32_t number) { word_ = (word_ & flags) | Listed::make(1) | Number::make(number); }

    // Returns whether all atomic operations recorded in the cell have block scope.
    bool block_scope() const { return BlockScope::get(word_) != 0; }
    void set_block_scope(bool only_block) { word_ = BlockScope::replace(word_, only_block); }

    // Returns whether all atomic operations recorded in the cell are loads.
    bool only_loads() const { return OnlyLoads::get(word_) != 0; }
    void set_only_loads(bool only) { word_ = OnlyLoads::replace(word_, only); }

    // Returns whether threads synchronize through the location (volatiles.h). This stays true until the memory is
    // freed.
    bool synchronizes() const { return Synchronizes::get(word_) != 0; }
    void set_synchronizes() { word_ |= Synchronizes::mask; }

  private:
    uint32_t word_;
};

// The record of accesses to one granule: FastTrack's shadow state of a variable. A granule is 4 bytes, or 2 or 1 if the
// kernel accesses such small pieces.
struct ShadowCell {
    // The last ordinary write, or `never`. If the first access was atomic, `write` is an epoch before all accesses of
    // the block.
    Epoch write;
    Epoch reads;          // the reads or atomic operations since that write that are not ordered among themselves
    uint16_t write_site;  // number of the site of the write; `read_site` is the number of the site of the reads
    uint16_t read_site;
    SecondReader second;
};
static_assert(sizeof(ShadowCell) == 24,
              "shadow memory is six times the memory that it watches, in granules of 4 bytes");

}  // namespace sim::checks
