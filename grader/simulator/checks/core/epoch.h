// The time and the thread of an access to a shadow cell in one 64-bit word: FastTrack's epoch c@t (Flanagan and Freund,
// PLDI 2009).
//
// clang-format off
//   serial    27 bits   number of the block, counted over all launches: blocks of earlier launches have smaller serials
//   time      24 bits   the clock c of the thread; it increases at each synchronization in which the thread takes part
//   atomic     1 bit    the accesses were atomic operations
//   sharing    2 bits   who made the accesses: one lane, lanes of one warp, warps of one block, or several blocks
//   thread    10 bits   number of the thread in its block; with several threads, the first one
// clang-format on
//
// Serial and thread together are the t of c@t. A barrier gives all its threads the same new time. Within a block,
// "happened before the last barrier" is therefore one comparison of whole words, and most accesses need no more.
// FastTrack keeps a vector of reads. Here `sharing` gives their extent, or a reader set (reader_set.h) lists them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "checks/core/bit_field.h"

namespace sim::checks {

enum Sharing : unsigned { one_lane, one_warp, one_block, many_blocks };

class Epoch {
    using Thread = BitField<uint64_t, 0, 10>;
    using Reach = BitField<uint64_t, Thread::end, 2>;
    using Atomic = BitField<uint64_t, Reach::end, 1>;
    using Time = BitField<uint64_t, Atomic::end, 24>;
    using Serial = BitField<uint64_t, Time::end, 27>;
    static_assert(Serial::end == 64, "the fields fill the word");
    static_assert(Thread::largest + 1 == 1024, "a block has as many threads at most");
    static_assert(Reach::largest == many_blocks, "each kind of sharing has its number");
    // Parts of the fields above that comparisons need alone. `Lane` is the lowest 5 bits of the thread's number.
    // `BeyondWarp` is the upper bit of `sharing`: it is set if the readers are not all in one warp.
    using Lane = BitField<uint64_t, Thread::begin, 5>;
    using BeyondWarp = BitField<uint64_t, Reach::begin + 1, 1>;
    static_assert((one_block >> 1) == 1 && (many_blocks >> 1) == 1 && (one_warp >> 1) == 0, "BeyondWarp is a bit");

  public:
    static constexpr uint32_t serial_limit = Serial::largest + 1;
    // The time of an asynchronous copy that no thread has waited for. It is later than all others, so that no access is
    // ordered after the copy.
    static constexpr uint32_t time_pending = Time::largest;
    // The maximum of all other times. A clock that reaches it stops.
    static constexpr uint32_t time_limit = time_pending - 1;

    Epoch() = default;
    constexpr Epoch(uint32_t serial, uint32_t time, unsigned thread = 0)
        : word_(Serial::make(serial) | Time::make(time) | Thread::make(thread)) {}
    // A value that no epoch has, and no part of an epoch (without_lane(), reach()) either.
    static constexpr Epoch none() { return Epoch(~uint64_t(0)); }

    constexpr uint32_t serial() const { return static_cast<uint32_t>(Serial::get(word_)); }
    constexpr uint32_t time() const { return static_cast<uint32_t>(Time::get(word_)); }
    constexpr unsigned thread() const { return static_cast<unsigned>(Thread::get(word_)); }
    constexpr unsigned warp() const { return thread() / (Lane::largest + 1); }
    constexpr unsigned lane() const { return static_cast<unsigned>(Lane::get(word_)); }
    constexpr Sharing sharing() const { return static_cast<Sharing>(Reach::get(word_)); }
    constexpr bool atomic() const { return Atomic::get(word_) != 0; }
    constexpr bool pending() const { return time() == time_pending; }
    constexpr bool same_block(Epoch other) const { return Serial::get(word_ ^ other.word_) == 0; }

    constexpr Epoch with_time(uint32_t time) const { return Epoch(Time::replace(word_, time)); }
    constexpr Epoch with_thread(unsigned thread) const { return Epoch(Thread::replace(word_, thread)); }
    constexpr Epoch with_sharing(Sharing sharing) const { return Epoch(Reach::replace(word_, sharing)); }
    constexpr Epoch with_atomic(bool atomic) const { return Epoch(Atomic::replace(word_, atomic)); }
    // Returns the part of the epoch that all lanes of a warp have in common at one time.
    constexpr Epoch without_lane() const { return Epoch(word_ & ~Lane::mask); }
    // Returns the two bits that say whether the accesses extend beyond a warp, and whether they are atomic.
    constexpr Epoch reach() const { return Epoch(word_ & (BeyondWarp::mask | Atomic::mask)); }
    // Returns the reach() of a set of ordinary reads by several warps.
    static constexpr Epoch reach_beyond_warp() { return Epoch(BeyondWarp::mask); }

    constexpr bool operator==(Epoch other) const { return word_ == other.word_; }
    constexpr bool operator!=(Epoch other) const { return word_ != other.word_; }
    constexpr bool operator<(Epoch other) const { return word_ < other.word_; }
    // Compares only the serial and the time.
    constexpr bool not_earlier_than(Epoch other) const { return word_ >> Time::begin >= other.word_ >> Time::begin; }

  private:
    friend class EpochRange;
    explicit constexpr Epoch(uint64_t word) : word_(word) {}
    uint64_t word_;  // no initial value: shadow memory is zero bytes, which means `never`
};
static_assert(sizeof(Epoch) == sizeof(uint64_t), "an epoch is one word");

constexpr Epoch never = {};
// The epoch of memory that the host wrote, or a launch so old that its serial is gone. Less than every block's epochs.
constexpr Epoch written_before = Epoch(0, 0, 1);

// The epochs in [begin, end).
class EpochRange {
  public:
    EpochRange() = default;
    constexpr EpochRange(Epoch begin, Epoch end) : begin_(begin), span_(end.word_ - begin.word_) {
        assert(!(end < begin));
    }
    constexpr Epoch begin() const { return begin_; }
    constexpr Epoch end() const { return Epoch(begin_.word_ + span_); }
    // One comparison suffices: for an epoch below begin_ the unsigned difference wraps around to a large number.
    constexpr bool contains(Epoch epoch) const { return epoch.word_ - begin_.word_ < span_; }

  private:
    Epoch begin_;
    uint64_t span_;
};

}  // namespace sim::checks
