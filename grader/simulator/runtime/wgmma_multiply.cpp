// The arithmetic of wgmma: as that of mma.sync (tensor_core.cpp), with 16 rows and up to 256 columns. Products and
// their sums are exact or nearly so, in double precision; the sum with the accumulator is truncated once per
// instruction. Sums of e4m3 and e5m2 keep fewer bits: see `add_aligned`.
#include <stdlib.h>
#include <string.h>

#include "matrix_descriptor.h"
#include "wgmma_operations.h"
#include "sim/shared.h"
#include "tensor_numbers.h"

namespace sim {

namespace {

constexpr unsigned max_k = 32, piece_bytes = 16, block_columns = 8;

// An operand in shared memory: core matrices of 8 pieces, two along k for each 8 rows (or columns).
struct Pieces {
    uint8_t bytes[max_columns / 8 * 2][8][piece_bytes];
};

void gather(const MatrixDescriptor& descriptor, bool mn_major, unsigned first_group, unsigned groups, Pieces& pieces) {
    for (unsigned group = 0; group < groups; ++group) {
        for (unsigned k = 0; k < 2; ++k) {
            for (unsigned i = 0; i < 8; ++i) {
                uint32_t address = descriptor.piece(mn_major, first_group + group, k, i);
                const void* from = own_shared_address(address);
                if (from)
                    memcpy(pieces.bytes[2 * group + k][i], from, piece_bytes);
                else
                    memset(pieces.bytes[2 * group + k][i], 0xff, piece_bytes);
            }
        }
    }
}

// Calls put(row or column, k, number) for all elements of `groups` groups of 8.
template <typename T, typename F>
void decode_all(const Pieces& pieces, bool mn_major, unsigned groups, F put) {
    constexpr unsigned each = piece_bytes / sizeof(typename T::Bits);
    for (unsigned matrix = 0; matrix < 2 * groups; ++matrix) {
        for (unsigned i = 0; i < 8; ++i) {
            unsigned mn = matrix / 2 * 8, k = matrix % 2;
            for (unsigned e = 0; e < each; ++e) {
                double number = element_of<T>(pieces.bytes[matrix][i], 0, e);
                if (mn_major)
                    put(mn + e, 8 * k + i, number);
                else
                    put(mn + i, each * k + e, number);
            }
        }
    }
}

template <typename F>
void decode_as(Element type, const Pieces& pieces, bool mn_major, unsigned groups, F put) {
    switch (type) {
#define TYPE(name)      \
    case Element::name: \
        return decode_all<operands::name>(pieces, mn_major, groups, put);
        TYPE(f16)
        TYPE(bf16)
        TYPE(tf32)
        TYPE(e4m3)
        TYPE(e5m2)
        TYPE(s8)
        TYPE(u8)
#undef TYPE
        default:
            return;
    }
}

}  // namespace

// Decoded B, [block of 8 columns][k][column], with the source that it was decoded from: the four warps of a warpgroup
// share it.
struct DecodedB {
    alignas(16) double number[max_columns / block_columns][max_k][block_columns];
    Pieces pieces, next;
    Element type;
    bool mn_major, negated;
    unsigned groups;
};

DecodedB* make_decoded() { return static_cast<DecodedB*>(calloc(1, sizeof(DecodedB))); }

namespace {

void decode_b(const WgmmaOperation& operation, DecodedB& decoded) {
    Pieces& pieces = decoded.next;
    const Wgmma& kind = operation.kind;
    unsigned groups = kind.n / 8u;
    gather(MatrixDescriptor(operation.b), kind.transpose_b, 0, groups, pieces);
    size_t bytes = groups * sizeof pieces.bytes[0] * 2;
    bool same = decoded.groups == groups && decoded.type == kind.b && decoded.mn_major == kind.transpose_b &&
                decoded.negated == kind.negate_b && memcmp(&decoded.pieces, &pieces, bytes) == 0;
    if (same) return;
    memcpy(&decoded.pieces, &pieces, bytes);
    decoded.groups = groups;
    decoded.type = kind.b;
    decoded.mn_major = kind.transpose_b;
    decoded.negated = kind.negate_b;
    double sign = kind.negate_b ? -1 : 1;
    decode_as(kind.b, pieces, kind.transpose_b, groups, [&](unsigned column, unsigned k, double number) {
        decoded.number[column / block_columns][k][column % block_columns] = sign * number;
    });
}

void decode_a(const WgmmaOperation& operation, unsigned warp, double (*a)[max_k]) {
    const Wgmma& kind = operation.kind;
    Pieces pieces;
    if (kind.a_in_registers) {
        // Row r of A has two pieces of 16 bytes, that is, of four words. Lane i holds word i % 4 of both pieces of the
        // rows i / 4 and i / 4 + 8.
        for (unsigned lane = 0; lane < lanes_per_warp; ++lane)
            for (unsigned r = 0; r < 4; ++r)
                memcpy(&pieces.bytes[r % 2 * 2 + r / 2][lane / 4][lane % 4 * 4], &operation.a_registers[lane][r], 4);
    } else {
        gather(MatrixDescriptor(operation.a), kind.transpose_a, 2 * warp, 2, pieces);
    }
    double sign = kind.negate_a ? -1 : 1;
    decode_as(kind.a, pieces, !kind.a_in_registers && kind.transpose_a, 2,
              [&](unsigned row, unsigned k, double number) { a[row][k] = sign * number; });
}

// Computes sum [2][8] = a [2, k] b [k, 8]. Each sum adds its products in the order of k.
typedef double Pair __attribute__((vector_size(16)));
inline void multiply_block(const double* a0, const double* a1, const double (*b)[block_columns], unsigned k,
                           double (*sum)[block_columns]) {
    Pair s00 = {}, s01 = {}, s02 = {}, s03 = {}, s10 = {}, s11 = {}, s12 = {}, s13 = {};
    for (unsigned i = 0; i < k; ++i) {
        auto* row = reinterpret_cast<const Pair*>(b[i]);
        Pair x = {a0[i], a0[i]}, y = {a1[i], a1[i]};
        s00 += x * row[0];
        s01 += x * row[1];
        s02 += x * row[2];
        s03 += x * row[3];
        s10 += y * row[0];
        s11 += y * row[1];
        s12 += y * row[2];
        s13 += y * row[3];
    }
    const Pair all[] = {s00, s01, s02, s03, s10, s11, s12, s13};
    memcpy(sum, all, sizeof all);
}

// The new value of an accumulator; `old` is 0 when the result is not accumulated (scale-d = 0).
struct AddF32 {
    uint32_t operator()(uint32_t old, double sum) const {
        return truncated(sum + static_cast<double>(bit_cast<float>(old)));
    }
};
struct AddF16 {
    uint32_t operator()(uint32_t old, double sum) const {
        double value = sum + static_cast<double>(bit_cast<float>(old));
        return bit_cast<uint32_t>(F16::decode(small_from_double<F16>(value)));
    }
};
// A sum of 32 products of 8-bit integers is exact in a double.
struct AddS32 {
    uint32_t operator()(uint32_t old, double sum) const {
        return static_cast<uint32_t>(static_cast<int32_t>(sum)) + old;  // wraps
    }
};
struct AddAndSaturate {
    uint32_t operator()(uint32_t old, double sum) const {
        double value = sum + static_cast<int32_t>(old);
        if (value > 2147483647.0) return 0x7fffffffu;
        if (value < -2147483648.0) return 0x80000000u;
        return static_cast<uint32_t>(static_cast<int32_t>(value));
    }
};

// The sum of products of e4m3 and e5m2 in f32. The 32 products and the accumulator are shifted right to the largest
// exponent among them. Then each is truncated to its highest 14 bits. The source for the products is the DeepSeek-V3
// Technical Report (2024), section 3.5.2, which describes an H800. That the accumulator is aligned like a product is an
// assumption, after Fasi et al., "Numerical behavior of NVIDIA tensor cores" (2021), who found it on older GPUs. No GPU
// confirmed the last bits.
constexpr int kept_bits = 14;

inline void add_aligned(const double* a, const double (*b)[block_columns], unsigned k, bool adds, uint32_t* value) {
    double old[block_columns], sum[block_columns] = {}, largest[block_columns], scale[block_columns];
    int32_t aligned[block_columns];
    for (unsigned c = 0; c < block_columns; ++c) {
        old[c] = adds ? static_cast<double>(bit_cast<float>(value[c])) : 0;
        largest[c] = __builtin_fabs(old[c]);
    }
    for (unsigned i = 0; i < k; ++i) {
        for (unsigned c = 0; c < block_columns; ++c) {
            double product = a[i] * b[i][c], size = __builtin_fabs(product);
            sum[c] += product;
            largest[c] = size > largest[c] ? size : largest[c];
        }
    }
    for (unsigned c = 0; c < block_columns; ++c) {
        // The scale is 2^(kept_bits - 1 - exponent), with the exponent of the largest addend. If all addends are 0, the
        // exponent field is 0. The lower limit of 512 is far below the field of any product.
        uint64_t field = bit_cast<uint64_t>(largest[c]) >> 52;
        scale[c] = bit_cast<double>((2046 + kept_bits - 1 - (field < 512 ? 512 : field)) << 52);
        aligned[c] = static_cast<int32_t>(__builtin_isfinite(old[c]) ? old[c] * scale[c] : 0);
    }
    for (unsigned i = 0; i < k; ++i) {
        for (unsigned c = 0; c < block_columns; ++c) {
            double shifted = a[i] * b[i][c] * scale[c];
            aligned[c] += __builtin_fabs(shifted) < (1 << kept_bits) ? static_cast<int32_t>(shifted) : 0;
        }
    }
    for (unsigned c = 0; c < block_columns; ++c) {
        double total = sum[c] + old[c];
        if (__builtin_isfinite(total)) total = aligned[c] / scale[c];
        value[c] = truncated(total);
    }
}

void multiply_aligned(const WgmmaOperation& operation, unsigned warp, DecodedB& b) {
    alignas(16) double a[warp_rows][max_k];
    decode_a(operation, warp, a);
    decode_b(operation, b);
    for (unsigned block = 0; block < operation.kind.n / block_columns; ++block) {
        for (unsigned row = 0; row < warp_rows; ++row) {
            add_aligned(a[row], b.number[block], operation.kind.k(), operation.adds,
                        &operation.tile->value[row][block * block_columns]);
        }
    }
}

template <typename F>
void multiply(const WgmmaOperation& operation, unsigned warp, DecodedB& b, F added) {
    const Wgmma& kind = operation.kind;
    alignas(16) double a[warp_rows][max_k], sum[2][block_columns];
    decode_a(operation, warp, a);
    decode_b(operation, b);
    for (unsigned block = 0; block < kind.n / block_columns; ++block) {
        for (unsigned row = 0; row < warp_rows; row += 2) {
            multiply_block(a[row], a[row + 1], b.number[block], kind.k(), sum);
            for (unsigned h = 0; h < 2; ++h) {
                uint32_t* value = &operation.tile->value[row + h][block * block_columns];
                for (unsigned c = 0; c < block_columns; ++c) value[c] = added(operation.adds ? value[c] : 0, sum[h][c]);
            }
        }
    }
}

}  // namespace

void perform(const WgmmaOperation& operation, unsigned warp, DecodedB& decoded) {
    switch (operation.kind.d) {
        case Element::f16:
            return multiply(operation, warp, decoded, AddF16());
        case Element::s32:
            if (operation.kind.saturate) return multiply(operation, warp, decoded, AddAndSaturate());
            return multiply(operation, warp, decoded, AddS32());
        default:
            if (operation.kind.a == Element::e4m3 || operation.kind.a == Element::e5m2) {
                return multiply_aligned(operation, warp, decoded);
            }
            return multiply(operation, warp, decoded, AddF32());
    }
}

}  // namespace sim
