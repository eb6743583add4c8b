// By which swizzle a tensor map has laid out each piece of shared memory, and whether the descriptor of a product says the
// same.
#pragma once

#include "checks/core/access.h"

namespace sim::checks {

// A copy with a tensor map fills a piece of the block's shared memory: `line` bytes are swizzled, 16: none are. 0: the copy
// has no tensor map.
void note_swizzled_fill(BlockState& owner, uintptr_t address, uint32_t bytes, unsigned line);

// What one product reads by one descriptor.
class SwizzleCheck {
  public:
    SwizzleCheck(const ThreadState& reader, const void* code, unsigned line)
        : reader_(reader), code_(code), line_(line) {}
    // A piece of 16 bytes, and the cell of its first bytes: ordinary stores since have made it something else.
    void look(const BlockState& owner, uintptr_t address, const ShadowCell& cell, const AccessSite& site);

  private:
    const ThreadState& reader_;
    const void* code_;
    unsigned line_;
    bool reported_ = false;
};
void forget_swizzles(BlockState& owner);

}  // namespace sim::checks
