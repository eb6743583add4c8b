// tcgen05.mma, cp and commit: PTX's requirements, and the arithmetic.
//
// The arithmetic is assumed to be that of wgmma (wgmma_multiply.cpp): products and their sums are exact or nearly so,
// and the sum with the accumulator is truncated once. Block-scaled MMAs first multiply each element by its scale
// factor, which is exact. Their sums were not compared with hardware.
#include <stdlib.h>
#include <string.h>

#include "async_operations.h"
#include "matrix_descriptor.h"
#include "misuse.h"
#include "scheduler.h"
#include "sim/error_codes.h"
#include "sim/mbarrier.h"
#include "sim/narrow_float.h"
#include "tensor_memory.h"
#include "tensor_numbers.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

void check_descriptor(Thread& self, Site site, uint64_t bits) {
    const char* why = tensor_descriptor_fault(bits);
    if (why) misused(self, site, why);
}

// PTX ISA, "Instruction descriptor" for .kind::f16, and the table of shapes.
void check_instruction(Thread& self, Site site, const Tcgen05Mma& mma) {
    uint32_t bits = mma.instruction;
    MmaShape shape = shape_of(bits);
    unsigned d = bits >> 4 & 3, a = bits >> 7 & 7, b = bits >> 10 & 7;
    if (bits & (15u | 1u << 6 | 1u << 23 | 7u << 29))
        misused(self, site,
                "invalid instruction descriptor of tcgen05.mma: for kind::f16, bits 0-3, 6, 23 and 29-31 must be 0 "
                "(sparse MMAs are not simulated)");
    if (d > 1 || a > 1 || b > 1)
        misused(self, site,
                "invalid type in the instruction descriptor of tcgen05.mma: for kind::f16, d must be f16 (0) or f32 "
                "(1), a and b f16 (0) or bf16 (1)");
    if (d == 0 && (a || b)) misused(self, site, "f16 accumulators of tcgen05.mma require f16 operands");
    bool fits = mma.pair        ? (shape.m == 128 || shape.m == 256) && shape.n % 32 == 0 && shape.n
                : shape.m == 64 ? shape.n % 8 == 0 && shape.n
                                : shape.m == 128 && shape.n % 16 == 0 && shape.n;
    if (!fits || shape.n > 256)
        misused(self, site,
                "invalid shape of tcgen05.mma: M is 64 (N a multiple of 8) or 128 (of 16) for cta_group::1, 128 or 256 "
                "(of 32) for cta_group::2; N is at most 256");
    if (!mma.a_in_tensor_memory) return;
    if (shape.a_mn_major) misused(self, site, "an A operand in tensor memory must be K-major: it cannot be transposed");
    if (shape.m != (mma.pair ? 256u : 128u))
        misused(self, site, "the simulator supports an A operand in tensor memory only with 128 rows per block");
}

// PTX ISA, "Instruction descriptor" for .kind::mxf8f6f4, mxf4 and mxf4nvf4, and "Block Scaling for tcgen05.mma".
struct BlockScaleFields {
    unsigned a_type, b_type, a_id, b_id;
    bool is_e8m0;
    explicit BlockScaleFields(uint32_t bits)
        : a_type(bits >> 7 & 7),
          b_type(bits >> 10 & 7),
          a_id(bits >> 29 & 3),
          b_id(bits >> 4 & 3),
          is_e8m0((bits >> 23 & 1) != 0) {}
};

// The type of the elements in a 16-byte piece: the size of an element in bits, and the number of elements per piece. In
// kind::mxf8f6f4, a piece holds 16 elements of 4, 6 or 8 bits. If they take fewer than 16 bytes, padding follows, as
// tensor maps for this kind load them.
struct ElementType {
    unsigned bits, per_piece;
    float (*decode)(unsigned);
};
ElementType element_type(Tcgen05Kind kind, unsigned code) {
    if (kind != Tcgen05Kind::mxf8f6f4) return {4, 32, code == 1 ? E2M1::decode : nullptr};
    switch (code) {
        case 0:
            return {8, 16, E4M3::decode};
        case 1:
            return {8, 16, E5M2::decode};
        case 3:
            return {6, 16, E2M3::decode};
        case 4:
            return {6, 16, E3M2::decode};
        case 5:
            return {4, 16, E2M1::decode};
        default:
            return {8, 16, nullptr};
    }
}

void check_block_scale(Thread& self, Site site, const Tcgen05Mma& mma) {
    uint32_t bits = mma.instruction;
    BlockScaleFields fields(bits);
    MmaShape shape = shape_of(bits);
    if (bits & (15u | 1u << 6 | 7u << 24 | 1u << 31))
        misused(self, site,
                "invalid instruction descriptor of a block-scaled tcgen05.mma: bits 0-3, 6, 24-26 and 31 must be 0 "
                "(sparse MMAs and K = 96 are not simulated)");
    if (!element_type(mma.kind, fields.a_type).decode || !element_type(mma.kind, fields.b_type).decode)
        misused(self, site,
                mma.kind == Tcgen05Kind::mxf8f6f4
                    ? "invalid type in the instruction descriptor of tcgen05.mma: for kind::mxf8f6f4, a and b must be "
                      "e4m3 (0), e5m2 (1), e2m3 (3), e3m2 (4) or e2m1 (5)"
                    : "invalid type in the instruction descriptor of tcgen05.mma: for kind::mxf4 and mxf4nvf4, a and b "
                      "must be e2m1 (1)");
    if (shape.a_mn_major || shape.b_mn_major)
        misused(self, site, "the simulator supports block-scaled tcgen05.mma only with K-major operands");
    if (shape.m != 128 || !shape.n || shape.n > 256)
        misused(self, site,
                "invalid shape of a block-scaled tcgen05.mma: for cta_group::1, M is 128, N a multiple of 8 up to 256");
    if (!fields.is_e8m0 && !(mma.kind == Tcgen05Kind::mxf4nvf4 && mma.scales == 4))
        misused(self, site,
                "invalid scale type in the instruction descriptor of tcgen05.mma: bit 23 may be 0 (ue4m3) only for "
                "kind::mxf4nvf4 with scale_vec::4X; else it must be 1 (ue8m0)");
    unsigned ids[] = {fields.a_id, fields.b_id};
    for (unsigned id : ids)
        if (id % mma.scales)
            misused(self, site,
                    mma.scales == 4 ? "invalid scale factor ID in the instruction descriptor of tcgen05.mma: with "
                                      "scale_vec::4X it must be 0, because the scales fill the word"
                                    : "invalid scale factor ID in the instruction descriptor of tcgen05.mma: with "
                                      "scale_vec::2X it must be 0 or 2, the first byte of the scales in their word");
    if (mma.scale_a >> 16 || mma.scale_b >> 16)
        misused(self, site, "invalid address of scale factors of tcgen05.mma: its lane must be 0");
    check_columns(self, site, *self.block, mma.scale_a, scale_columns(shape.m), "tcgen05.mma (scale factors of A)");
    check_columns(self, site, *self.block, mma.scale_b, scale_columns(shape.n), "tcgen05.mma (scale factors of B)");
}

unsigned columns_of_d(const TensorOperation& operation) {
    if (operation.copy_bits) return operation.copy_bits / 32;
    return operation.shape.m == 128 && operation.mma.pair ? operation.shape.n / 2 : operation.shape.n;
}

void start(Thread& self, Site site, TensorOperation operation, const char* what) {
    check_group(self, site, operation.mma.pair);
    Block& block = *self.block;
    if (operation.mma.pair && block.rank % 2)
        misused(self, site, "tcgen05.mma and cp with cta_group::2 must be executed by the block of even rank");
    if (operation.mma.d >> 16) misused(self, site, "invalid accumulator address of tcgen05.mma: its lane must be 0");
    for (unsigned which = 0; which <= operation.mma.pair; ++which) {
        Block& of = which ? neighbor_of(block) : block;
        check_columns(self, site, of, operation.mma.d, columns_of_d(operation), what);
        if (operation.mma.a_in_tensor_memory)
            check_columns(self, site, of, static_cast<uint32_t>(operation.mma.a), depth_of(Tcgen05Kind::f16) / 2, what);
    }
    auto* copy = static_cast<TensorOperation*>(malloc(sizeof operation));
    if (!copy) out_of_memory(self.call_address, too_many_mmas);
    operation.thread = &self;
    operation.address = self.call_address;
    operation.number = ++block.cluster->blocks[0]->operation_count;
    operation.next = nullptr;
    *copy = operation;
    TensorMemory& memory = *block.tensor_memory;
    (memory.oldest ? memory.youngest->next : memory.oldest) = copy;
    memory.youngest = copy;
    if (block.checked) events::tensor_operation(self, operation);
}

// --- arithmetic ---

constexpr unsigned max_rows = 256, max_columns = 256, max_depth = 64, lane_columns = 8;
typedef double Eight __attribute__((vector_size(8 * sizeof(double))));

double decode(bool is_bf16, uint16_t bits) {
    return is_bf16 ? static_cast<double>(BF16::decode(bits)) : static_cast<double>(F16::decode(bits));
}

// Calls put(group, k, i, bytes) for each 16-byte piece of an operand in shared memory that a matrix descriptor
// describes.
template <typename F>
void each_piece(Block& block, uint64_t descriptor, bool mn_major, unsigned rows, F put) {
    MatrixDescriptor matrix = MatrixDescriptor::of_tcgen05(descriptor);
    for (unsigned group = 0; group < rows / 8; ++group) {
        for (unsigned k = 0; k < 2; ++k) {
            for (unsigned i = 0; i < 8; ++i) {
                alignas(16) unsigned char piece[16];
                const void* from = shared_address_of(block, matrix.piece(mn_major, group, k, i));
                if (from)
                    memcpy(piece, from, sizeof piece);
                else
                    memset(piece, 0xff, sizeof piece);
                put(group, k, i, piece);
            }
        }
    }
}

// Calls put() for the elements [row][k] of an operand of 16 bits with `rows` rows.
template <typename F>
void each_element(Block& block, uint64_t descriptor, bool mn_major, unsigned rows, F put) {
    each_piece(block, descriptor, mn_major, rows,
               [&](unsigned group, unsigned k, unsigned i, const unsigned char* bytes) {
                   uint16_t piece[8];
                   memcpy(piece, bytes, sizeof piece);
                   for (unsigned e = 0; e < 8; ++e) {
                       if (mn_major)
                           put(8 * group + e, 8 * k + i, piece[e]);
                       else
                           put(8 * group + i, 8 * k + e, piece[e]);
                   }
               });
}

// Reads the scale factors of row `row` of A or of column `row` of B. The factors of each 32 rows are in one column of
// tensor memory, repeated for each of the four warps. If the four copies differ, the result is undefined: NaN.
void scales_of(const TensorMemory& memory, uint32_t address, unsigned row, const Tcgen05Mma& mma, unsigned id,
               double (&scales)[4]) {
    BlockScaleFields fields(mma.instruction);
    unsigned column = (address & 0xffff) + row / 32, lane = row % 32;
    uint32_t word = memory.value[lane][column], differs = 0;
    for (unsigned warp = 1; warp < 4; ++warp) differs |= word ^ memory.value[32 * warp + lane][column];
    for (unsigned s = 0; s < mma.scales; ++s) {
        unsigned byte = word >> 8 * (id + s) & 0xff, nan = differs >> 8 * (id + s) & 0xff;
        float scale = fields.is_e8m0 ? E8M0::decode(byte) : E4M3::decode(byte & 0x7f);
        scales[s] = nan ? __builtin_nan("") : static_cast<double>(scale);
    }
}

// Calls put() for the elements [row][k] of a block-scaled operand, each multiplied by its scale factor.
template <typename F>
void each_scaled_element(const TensorOperation& operation, bool is_b, unsigned rows, F put) {
    const Tcgen05Mma& mma = operation.mma;
    BlockScaleFields fields(mma.instruction);
    ElementType type = element_type(mma.kind, is_b ? fields.b_type : fields.a_type);
    Block& block = *operation.thread->block;
    double scales[max_rows][4];
    for (unsigned row = 0; row < rows; ++row)
        scales_of(*block.tensor_memory, is_b ? mma.scale_b : mma.scale_a, row, mma, is_b ? fields.b_id : fields.a_id,
                  scales[row]);
    float values[256];
    for (unsigned pattern = 0; pattern < 1u << type.bits; ++pattern) values[pattern] = type.decode(pattern);
    unsigned per_scale = depth_of(mma.kind) / mma.scales;
    bool negates = is_b ? operation.shape.negate_b : operation.shape.negate_a;
    each_piece(block, is_b ? mma.b : mma.a, false, rows,
               [&](unsigned group, unsigned part, unsigned i, const unsigned char* bytes) {
                   unsigned row = 8 * group + i;
                   for (unsigned e = 0; e < type.per_piece; ++e) {
                       unsigned bit = e * type.bits, k = part * type.per_piece + e;
                       unsigned pair = bytes[bit / 8] | (bit / 8 + 1 < 16 ? bytes[bit / 8 + 1] << 8 : 0);
                       double value = static_cast<double>(values[pair >> bit % 8 & ((1u << type.bits) - 1)]);
                       put(row, k, (negates ? -value : value) * scales[row][k / per_scale]);
                   }
               });
}

}  // namespace

// Decoded operands of an mma.
struct Operands {
    double a[max_rows * max_depth];  // [rows][depth]
    Eight b[max_depth][max_columns / lane_columns];
};

namespace {

// lane_of and column_of return the lane and the column of tensor memory that hold an accumulator (PTX ISA, "Data path
// layout organization"). `row` and `column` count within the block's part of D.
unsigned lane_of(const TensorOperation& operation, unsigned row, unsigned column) {
    if (operation.shape.m == 64) return row / 16 * 32 + row % 16;
    if (operation.shape.m == 128 && operation.mma.pair) return column < operation.shape.n / 2 ? row : row + 64;
    return row;
}
unsigned column_of(const TensorOperation& operation, unsigned column) {
    bool halves = operation.shape.m == 128 && operation.mma.pair;
    return halves ? column % (operation.shape.n / 2) : column;
}

void multiply(const TensorOperation& operation) {
    const Tcgen05Mma& mma = operation.mma;
    const MmaShape& shape = operation.shape;
    TensorMemory& own = *operation.thread->block->tensor_memory;
    if (!own.operands) own.operands = static_cast<Operands*>(aligned_alloc(alignof(Operands), sizeof(Operands)));
    if (!own.operands) out_of_memory(operation.address, "the simulator is out of memory for the operands of an MMA");
    Operands& operands = *own.operands;
    unsigned blocks = mma.pair ? 2 : 1, rows = shape.m / blocks, columns = shape.n / blocks;
    unsigned depth = depth_of(mma.kind);
    auto put_b = [&](unsigned n, unsigned k, double value) {
        operands.b[k][n / lane_columns][n % lane_columns] = value;
    };
    Block* of[2] = {operation.thread->block, nullptr};
    if (mma.pair) of[1] = &neighbor_of(*of[0]);
    double sign_a = shape.negate_a ? -1 : 1, sign_b = shape.negate_b ? -1 : 1;
    if (mma.scales) {
        each_scaled_element(operation, false, rows,
                            [&](unsigned row, unsigned k, double value) { operands.a[row * depth + k] = value; });
        each_scaled_element(operation, true, columns, put_b);
    }
    for (unsigned which = 0; which < blocks && !mma.scales; ++which) {
        double* a = operands.a + which * rows * depth;
        if (mma.a_in_tensor_memory) {
            for (unsigned row = 0; row < rows; ++row) {
                const uint32_t* words = of[which]->tensor_memory->value[row] + (mma.a & 0xffff);
                for (unsigned k = 0; k < depth; ++k)
                    a[row * depth + k] =
                        sign_a * decode(shape.a_is_bf16, static_cast<uint16_t>(words[k / 2] >> 16 * (k % 2)));
            }
        } else {
            each_element(*of[which], mma.a, shape.a_mn_major, rows, [&](unsigned row, unsigned k, uint16_t bits) {
                a[row * depth + k] = sign_a * decode(shape.a_is_bf16, bits);
            });
        }
        each_element(*of[which], mma.b, shape.b_mn_major, columns, [&](unsigned column, unsigned k, uint16_t bits) {
            put_b(which * columns + column, k, sign_b * decode(shape.b_is_bf16, bits));
        });
    }
    for (unsigned row = 0; row < shape.m; ++row) {
        TensorMemory& memory = *of[row / rows]->tensor_memory;
        for (unsigned group = 0; group < shape.n / lane_columns; ++group) {
            Eight sum = {};
            for (unsigned k = 0; k < depth; ++k) sum += operands.a[row * depth + k] * operands.b[k][group];
            unsigned lane = lane_of(operation, row % rows, group * lane_columns);
            uint32_t* d = memory.value[lane] + (mma.d & 0xffff) + column_of(operation, group * lane_columns);
            for (unsigned c = 0; c < lane_columns; ++c) {
                if (shape.d_is_f32) {
                    double old = mma.adds ? static_cast<double>(bit_cast<float>(d[c])) : 0;
                    d[c] = truncated(sum[c] + old);
                } else {
                    double old = mma.adds ? decode(false, static_cast<uint16_t>(d[c])) : 0;
                    d[c] = small_from_double<F16>(sum[c] + old);
                }
            }
        }
    }
}

void copy(const TensorOperation& operation) {
    MatrixDescriptor matrix = MatrixDescriptor::of_tcgen05(operation.mma.a);
    for (unsigned which = 0; which <= operation.mma.pair; ++which) {
        Block& block = which ? neighbor_of(*operation.thread->block) : *operation.thread->block;
        for (unsigned lane = 0; lane < tensor_lanes; ++lane) {
            unsigned row = operation.copy_warpx4 ? lane % 32 : lane;
            for (unsigned k = 0; k < operation.copy_bits / 128; ++k) {
                const void* from = shared_address_of(block, matrix.piece(false, row / 8, k, row % 8));
                uint32_t* to = block.tensor_memory->value[lane] + (operation.mma.d & 0xffff) + 4 * k;
                if (from)
                    memcpy(to, from, 16);
                else
                    memset(to, 0xff, 16);
            }
        }
    }
}

}  // namespace

MmaShape shape_of(uint32_t bits) {
    auto bit = [&](unsigned i) { return (bits >> i & 1) != 0; };
    return {(bits >> 24 & 31) * 16, (bits >> 17 & 63) * 8, bit(4), bit(7), bit(10), bit(13), bit(14), bit(15), bit(16)};
}

void perform(const TensorOperation& operation) {
    if (operation.copy_bits)
        copy(operation);
    else
        multiply(operation);
}

void perform_tensor_operations(Block& block, uint64_t number) {
    TensorMemory* memory = block.tensor_memory;
    while (memory && memory->oldest && memory->oldest->number <= number) {
        TensorOperation* operation = memory->oldest;
        perform(*operation);
        memory->oldest = operation->next;
        free(operation);
    }
}

void tensor_multiply(Site site, const Tcgen05Mma& mma) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    MmaShape shape = shape_of(mma.instruction);
    if (mma.scales) {
        check_group(*self, site, mma.pair);
        check_block_scale(*self, site, mma);
        shape.d_is_f32 = true;  // its instruction descriptor has no field for the type of D
    } else {
        check_instruction(*self, site, mma);
    }
    if (!mma.a_in_tensor_memory) check_descriptor(*self, site, mma.a);
    check_descriptor(*self, site, mma.b);
    start(*self, site, {mma, shape, 0, false, nullptr, nullptr, 0, nullptr}, "tcgen05.mma");
}

void tensor_copy_from_shared(Site site, bool pair, uint32_t address, uint64_t from, unsigned bits, bool warpx4) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_descriptor(*self, site, from);
    start(*self, site, {{from, 0, address, 0, pair, false, false}, {}, bits, warpx4, nullptr, nullptr, 0, nullptr},
          "tcgen05.cp");
}

void tensor_commit(Site site, bool pair, void* mbarrier, bool multicast, uint32_t blocks) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_group(*self, site, pair);
    start_commit(*self, site, mbarrier, multicast ? multicast_to | blocks : 0);
}

}  // namespace sim
