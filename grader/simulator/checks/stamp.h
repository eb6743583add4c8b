// When and by whom a memory cell was accessed, in one 64-bit word.
//
//   bits 63..37  serial    which block; numbered over all launches, so that a smaller serial is an earlier launch
//   bits 36..13  time      logical time of the thread: grows at every synchronisation in which it takes part
//   bit  12      atomic    the accesses were atomic operations
//   bits 11..10  sharing   one lane, several lanes of a warp, several warps of a block, several blocks
//   bits  9..0   thread    in its block; of several, the first
//
// A barrier gives all its threads the same time, greater than any before. So within a block "happened before the last
// barrier" is one comparison of whole words with the barrier's time, and that is all that most accesses need.
#pragma once

#include <stdint.h>

namespace sim::checks {

using Stamp = uint64_t;

enum Sharing : unsigned { one_lane, one_warp, one_block, many_blocks };

constexpr unsigned sharing_shift = 10;
constexpr unsigned atomic_shift = 12;
constexpr unsigned time_shift = 13;
constexpr unsigned serial_shift = 37;
constexpr Stamp thread_mask = (Stamp(1) << sharing_shift) - 1;
constexpr Stamp atomic_bit = Stamp(1) << atomic_shift;
constexpr unsigned serial_limit = 1u << (64 - serial_shift);
// An asynchronous copy that nobody has waited for: later than anything, so ordered with nothing.
constexpr uint32_t time_pending = (1u << (serial_shift - time_shift)) - 1;
constexpr uint32_t time_limit = time_pending - 1;

// Memory that was written by the host, or so long ago that the launch is over. Below every stamp of a block.
constexpr Stamp written_before = 1;
constexpr Stamp never = 0;

constexpr Stamp floor_of(uint32_t serial, uint32_t time) {
    return Stamp(serial) << serial_shift | Stamp(time) << time_shift;
}
constexpr Stamp make_stamp(uint32_t serial, uint32_t time, unsigned thread) { return floor_of(serial, time) | thread; }

constexpr uint32_t serial_of(Stamp stamp) { return static_cast<uint32_t>(stamp >> serial_shift); }
constexpr uint32_t time_of(Stamp stamp) { return static_cast<uint32_t>(stamp >> time_shift) & time_pending; }
constexpr unsigned thread_of(Stamp stamp) { return static_cast<unsigned>(stamp & thread_mask); }
constexpr unsigned warp_of(Stamp stamp) { return thread_of(stamp) / 32; }
constexpr Sharing sharing_of(Stamp stamp) { return static_cast<Sharing>(stamp >> sharing_shift & 3); }
constexpr bool is_atomic(Stamp stamp) { return (stamp & atomic_bit) != 0; }
constexpr Stamp with_sharing(Stamp stamp, Sharing sharing) {
    return (stamp & ~(Stamp(3) << sharing_shift)) | Stamp(sharing) << sharing_shift;
}
constexpr Stamp with_time(Stamp stamp, uint32_t time) {
    return (stamp & ~(Stamp(time_pending) << time_shift)) | Stamp(time) << time_shift;
}
constexpr Stamp with_thread(Stamp stamp, unsigned thread) { return (stamp & ~thread_mask) | thread; }

}  // namespace sim::checks
