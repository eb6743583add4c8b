// Where the operands of wgmma lie in shared memory, as its matrix descriptors say (PTX ISA, "Matrix Descriptor Format" and
// "Shared Memory Matrix Layout").
//
// An operand is made of core matrices: 8 pieces of 16 bytes. Along k each row of A (or column of B) has two of them. The
// pieces of a core matrix are
//
//   K-major    8 rows of A, or columns of B; in each as many k as 16 bytes hold
//   MN-major   8 k; in each 8 rows of A, or columns of B, of 16 bits
//
// and a swizzle exchanges the pieces of a line of 128, 64 or 32 bytes, by the line's number. It looks at addresses, not at
// offsets: that is why tiles begin at a multiple of 1024 bytes, and why a descriptor may begin some pieces further on.
#pragma once

#include <stdint.h>

namespace sim {

struct MatrixDescriptor {
    uint32_t start, leading, stride;  // bytes
    uint32_t base;                    // number of the line with which the pattern of the swizzle begins
    uint32_t line;                    // bytes that the swizzle permutes; 16: none

    explicit constexpr MatrixDescriptor(uint64_t bits)
        : start(field(bits, 0) << 4),
          leading(field(bits, 16) << 4),
          stride(field(bits, 32) << 4),
          base(static_cast<uint32_t>(bits >> 49 & 7)),
          line(lines[bits >> 62]) {}

    // The address in the shared window of piece i of the core matrix that is number `group` along M or N and number `k`
    // (0 or 1) along K.
    constexpr uint32_t piece(bool mn_major, unsigned group, unsigned k, unsigned i) const {
        uint32_t address = start + i * line;
        if (!mn_major)
            address += group * stride + k * (line == 16 ? leading : 16);
        else if (line == 16)
            address += group * stride + k * leading;
        else
            address += group % (line / 16) * 16 + group / (line / 16) * leading + k * stride;
        address &= window - 1;
        return address ^ (((address >> 7) - base) & (line / 16 - 1)) << 4;
    }

  private:
    static constexpr uint32_t window = 1 << 18;
    static constexpr uint32_t lines[4] = {16, 128, 64, 32};
    static constexpr uint32_t field(uint64_t bits, unsigned first) {
        return static_cast<uint32_t>(bits >> first) & 0x3fff;
    }
};

}  // namespace sim
