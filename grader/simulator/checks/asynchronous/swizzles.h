// The swizzle with which a tensor map wrote each piece of shared memory, compared with the swizzle of the matrix
// descriptor that reads it.
#pragma once

#include "checks/core/access.h"

namespace sim::checks {

// The tensor cores read a block's shared memory, red zones included, in pieces of 16 bytes.
constexpr unsigned piece_log2 = 4;
constexpr size_t max_pieces = (size_t(512) << 10) >> piece_log2;

// Records that a copy with a tensor map fills shared memory of the block. `line`: bytes that are swizzled together; 16:
// no swizzle; 0: the copy has no tensor map.
void note_swizzled_fill(BlockState& owner, uintptr_t address, uint32_t bytes, unsigned line);

// The reads of one MMA through one descriptor.
class SwizzleCheck {
  public:
    SwizzleCheck(const ThreadState& reader, const void* code, unsigned line)
        : reader_(reader), code_(code), line_(line) {}
    // Checks a piece of 16 bytes, given the cell of its first bytes: later ordinary stores may have replaced it.
    void check(const BlockState& owner, uintptr_t address, const ShadowCell& cell, const AccessSite& site);

  private:
    const ThreadState& reader_;
    const void* code_;
    unsigned line_;
    bool reported_ = false;
};
void forget_swizzles(BlockState& owner);

}  // namespace sim::checks
