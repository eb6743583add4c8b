// The layout of wgmma and tcgen05 operands in shared memory, as their matrix descriptors give it (PTX ISA, "Matrix
// Descriptor Format" and "Shared Memory Matrix Layout").
//
// An operand consists of core matrices. A core matrix has 8 pieces of 16 bytes. An operand has two core matrices along
// k.
//
// - K-major: each piece of a core matrix belongs to one row of A (or column of B). It holds the elements of as many k
//   as
//   fit in 16 bytes.
// - MN-major: each piece of a core matrix belongs to one k. It holds the elements of 8 rows of A (or columns of B), of
//   16
//   bits each.
//
// A swizzle permutes the pieces of a line of 128, 64 or 32 bytes by the line's number. It depends on addresses, not on
// offsets. That is why tiles begin at a multiple of 1024 bytes, and why a descriptor may begin at a later piece.
#pragma once

#include <stdint.h>

namespace sim {

struct MatrixDescriptor {
    uint32_t start, leading, stride;  // bytes
    uint32_t base;                    // number of the line at which the swizzle pattern begins
    uint32_t line;                    // bytes that the swizzle permutes; 16: no swizzle

    explicit constexpr MatrixDescriptor(uint64_t bits)
        : start(field(bits, 0) << 4),
          leading(field(bits, 16) << 4),
          stride(field(bits, 32) << 4),
          base(static_cast<uint32_t>(bits >> 49 & 7)),
          line(lines[bits >> 62]) {}

    // The descriptor of tcgen05 has the same fields, except that the swizzle mode takes three bits.
    static constexpr MatrixDescriptor of_tcgen05(uint64_t bits) {
        MatrixDescriptor descriptor(bits);
        descriptor.line = bits >> 61 == 0 ? 16 : bits >> 61 == 2 ? 128 : bits >> 61 == 4 ? 64 : 32;
        return descriptor;
    }

    // Returns the address in the shared window of piece i of the core matrix with number `group` along M or N and
    // number `k` (0 or 1) along K.
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

// Returns why the bits are not a supported matrix descriptor of tcgen05, or null if they are one.
constexpr const char* tensor_descriptor_fault(uint64_t bits) {
    uint64_t swizzle = bits >> 61;
    if ((bits >> 46 & 7) != 1)
        return "bits 46-48 of a tcgen05 matrix descriptor must be 0b001: this one may be a descriptor of wgmma";
    if (bits >> 53 & 0xff) return "bits 53-60 of a tcgen05 matrix descriptor must be 0";
    if (bits >> 52 & 1)
        return "the simulator does not support absolute leading dimensions (bit 52 of the matrix descriptor)";
    if (swizzle == 1) return "the simulator does not support the 128-byte swizzle with 32-byte atoms";
    if (swizzle % 2)
        return "the swizzle mode of a tcgen05 matrix descriptor must be 0 (none), 2 (128 bytes), 4 (64) or 6 (32)";
    return nullptr;
}

}  // namespace sim
