// mma.sync, wmma and ldmatrix: the last lane of a warp to arrive gathers all lanes' fragments, computes, and
// distributes the results.
#include "sim/tensor_core.h"

#include <type_traits>

#include "scheduler.h"
#include "sim/error_codes.h"
#include "sim/small_float.h"
#include "sim/warp.h"
#include "tensor_numbers.h"
#include "tensor_type.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

constexpr unsigned lanes = 32;

// A lane's input and output registers.
struct Operands {
    uint32_t a[4], b[2], c[4], d[4];
};

void split(uint64_t word, uint32_t* registers) {
    registers[0] = static_cast<uint32_t>(word);
    registers[1] = static_cast<uint32_t>(word >> 32);
}
uint64_t join(const uint32_t* registers) { return static_cast<uint64_t>(registers[1]) << 32 | registers[0]; }

// The formats of a lane's accumulator registers. The products are added one by one, beginning with start(c). Then
// finish() returns the value to store.
namespace accumulators {
struct f32 {
    static double get(const uint32_t* c, unsigned i) { return static_cast<double>(bit_cast<float>(c[i])); }
    static double start(double) { return 0; }
    static double add(double sum, double a, double b) { return sum + a * b; }
    static double finish(double sum, double c) { return sum + c; }
    static void set(uint32_t* d, unsigned i, double value) { d[i] = bit_cast<uint32_t>(truncate_to_float(value)); }
};
struct f16 : f32 {
    static double get(const uint32_t* c, unsigned i) { return element_of<operands::f16>(c, i / 2, i % 2); }
    static void set(uint32_t* d, unsigned i, double value) {
        uint32_t half = small_from_double<F16>(value);
        d[i / 2] = i % 2 == 0 ? half : (d[i / 2] & 0xffff) | half << 16;
    }
};
struct f64 {
    static double get(const uint32_t* c, unsigned i) { return element_of<operands::f64>(c, i, 0); }
    static double start(double c) { return c; }
    static double add(double sum, double a, double b) { return __builtin_fma(a, b, sum); }
    static double finish(double sum, double) { return sum; }
    static void set(uint32_t* d, unsigned i, double value) { split(bit_cast<uint64_t>(value), d + 2 * i); }
};
struct s32 {
    static uint32_t get(const uint32_t* c, unsigned i) { return c[i]; }
    static uint32_t start(uint32_t c) { return c; }
    static uint32_t add(uint32_t sum, int32_t a, int32_t b) { return sum + static_cast<uint32_t>(a * b); }  // wraps
    static uint32_t finish(uint32_t sum, uint32_t) { return sum; }
    static void set(uint32_t* d, unsigned i, uint32_t value) { d[i] = value; }
};
// .satfinite
struct saturated {
    static int64_t get(const uint32_t* c, unsigned i) { return static_cast<int32_t>(c[i]); }
    static int64_t start(int64_t c) { return c; }
    static int64_t add(int64_t sum, int32_t a, int32_t b) { return sum + a * b; }
    static int64_t finish(int64_t sum, int64_t) { return sum; }
    static void set(uint32_t* d, unsigned i, int64_t value) {
        int64_t kept = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
        d[i] = static_cast<uint32_t>(kept);
    }
};
}  // namespace accumulators

// One layout serves all shapes (PTX ISA, "Matrix Fragments for mma"). With g = lane / 4 and t = lane % 4, a lane holds:
//
// - A: in row g, and in row g + 8 if M is 16, in_register elements of each block of 4 * in_register columns. They begin
//   at column t * in_register of the block. The registers hold both rows of a block before those of the next block.
// - B: in column g, in_register elements of each block of 4 * in_register rows. They begin at row t * in_register.
// - C: in row g, and in row g + 8 if M is 16, the columns 2t and 2t + 1.
template <unsigned M, unsigned K, typename D, typename A, typename B>
void multiply(void* const arguments[lanes], unsigned participants) {
    using Element = decltype(A::value(0));
    using Accumulator = decltype(D::get(nullptr, 0));
    constexpr unsigned in_register = sizeof(typename A::Bits) < 4 ? 4 / sizeof(typename A::Bits) : 1;
    constexpr unsigned block = 4 * in_register, row_groups = M / 8;
    static_assert(sizeof(typename A::Bits) == sizeof(typename B::Bits) && K % block == 0 && M % 8 == 0,
                  "no such layout");
    static Operands nothing;
    Element a[M][K], b[K][8];
    Accumulator c[M][8], sum[M][8];

    for (unsigned lane = 0; lane < lanes; ++lane) {
        const Operands& own = participants >> lane & 1 ? *static_cast<Operands*>(arguments[lane]) : nothing;
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned r = 0; r < K / block; ++r) {
            for (unsigned i = 0; i < in_register; ++i) {
                unsigned k = r * block + t * in_register + i;
                for (unsigned h = 0; h < row_groups; ++h) a[g + 8 * h][k] = element_of<A>(own.a, row_groups * r + h, i);
                b[k][g] = element_of<B>(own.b, r, i);
            }
        }
        for (unsigned i = 0; i < 2 * row_groups; ++i) c[g + i / 2 * 8][2 * t + i % 2] = D::get(own.c, i);
    }
    for (unsigned row = 0; row < M; ++row) {
        for (unsigned column = 0; column < 8; ++column) sum[row][column] = D::start(c[row][column]);
        for (unsigned k = 0; k < K; ++k) {
            for (unsigned column = 0; column < 8; ++column) {
                sum[row][column] = D::add(sum[row][column], a[row][k], b[k][column]);
            }
        }
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(participants >> lane & 1)) continue;
        Operands& own = *static_cast<Operands*>(arguments[lane]);
        for (unsigned i = 0; i < 2 * row_groups; ++i) {
            unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            D::set(own.d, i, D::finish(sum[row][column], c[row][column]));
        }
    }
}

// One kind of mma.
struct MmaKind {
    WarpFinish finish;
    TensorType type;
    unsigned operations;  // additions and multiplications per tile
};

// Returns the implementation of an mma.sync by its number. The headers pass valid numbers, so an invalid number is an
// error of the kernel.
MmaKind mma_kind(Mma wanted, const void* caller) {
    bool saturates = static_cast<int>(wanted) & saturating_bit;
    switch (static_cast<Mma>(static_cast<int>(wanted) & ~saturating_bit)) {
#define SIM_MMA(M, N, K, D, A, B)                                                                               \
    case Mma::m##M##n##N##k##K##_##D##_##A##_##B: {                                                             \
        static_assert(N == 8, "a lane holds two columns of eight");                                             \
        using Saturated = std::conditional<std::is_same<accumulators::D, accumulators::s32>::value,             \
                                           accumulators::saturated, accumulators::D>::type;                     \
        return {saturates ? multiply<M, K, Saturated, operands::A, operands::B>                                 \
                          : multiply<M, K, accumulators::D, operands::A, operands::B>,                          \
                std::is_same<accumulators::D, accumulators::f16>::value ? TensorType::f16_sums : TensorType::A, \
                2 * M * N * K};                                                                                 \
    }
#include "sim/mma_shapes.def"
#undef SIM_MMA
    }
    raise_fault(events::FaultKind::illegal_instruction, cudaErrorIllegalInstruction, nullptr, caller,
                "unsupported mma shape or types");
}

// The 8x8 matrices of 16-bit elements of ldmatrix, stmatrix and movmatrix: [matrix][row][column].
struct Matrices {
    uint16_t element[4][8][8];
};

// Returns a lane's row of 16 bytes: row lane % 8 of matrix lane / 8.
void put_row(Matrices& matrices, unsigned lane, const uint32_t* words) {
    for (unsigned i = 0; i < 8; ++i) {
        matrices.element[lane / 8][lane % 8][i] = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
    }
}
void get_row(const Matrices& matrices, unsigned lane, uint32_t* words) {
    const uint16_t* row = matrices.element[lane / 8][lane % 8];
    for (unsigned i = 0; i < 4; ++i) words[i] = static_cast<uint32_t>(row[2 * i + 1]) << 16 | row[2 * i];
}
// Stores a lane's two elements of each matrix: the elements (g, 2t) and (g, 2t + 1) of the matrix or, if `transposed`,
// of its transpose.
void put_pairs(Matrices& matrices, unsigned lane, const uint32_t* words, bool transposed) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned m = 0; m < 4; ++m) {
        for (unsigned i = 0; i < 2; ++i) {
            uint16_t value = static_cast<uint16_t>(words[m] >> (16 * i));
            (transposed ? matrices.element[m][2 * t + i][g] : matrices.element[m][g][2 * t + i]) = value;
        }
    }
}
void get_pairs(const Matrices& matrices, unsigned lane, uint32_t* words, bool transposed) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned m = 0; m < 4; ++m) {
        uint32_t low = transposed ? matrices.element[m][2 * t][g] : matrices.element[m][g][2 * t];
        uint32_t high = transposed ? matrices.element[m][2 * t + 1][g] : matrices.element[m][g][2 * t + 1];
        words[m] = high << 16 | low;
    }
}

enum class Form { row, pairs, transposed_pairs };

template <Form FROM, Form TO>
void redistribute(void* const arguments[lanes], unsigned participants) {
    Matrices matrices = {};
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(participants >> lane & 1)) continue;
        const uint32_t* words = static_cast<Operands*>(arguments[lane])->a;
        if (FROM == Form::row) put_row(matrices, lane, words);
        if (FROM != Form::row) put_pairs(matrices, lane, words, FROM == Form::transposed_pairs);
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(participants >> lane & 1)) continue;
        uint32_t* words = static_cast<Operands*>(arguments[lane])->d;
        if (TO == Form::row) get_row(matrices, lane, words);
        if (TO != Form::row) get_pairs(matrices, lane, words, TO == Form::transposed_pairs);
    }
}

// `caller` is the kernel's return address, for findings.
Registers exchange(Site site, const char* name, Operands& operands, WarpFinish finish, const void* caller) {
    warp_exchange_from(site, name, ~0u, &operands, finish, caller);
    return Registers{join(operands.d), join(operands.d + 2)};
}

}  // namespace

Registers mma(Site site, Mma kind, uint64_t a01, uint64_t a23, uint64_t b01, uint64_t c01, uint64_t c23) {
    MmaKind wanted = mma_kind(kind, CALLER);
    Operands operands = {};
    split(a01, operands.a);
    split(a23, operands.a + 2);
    split(b01, operands.b);
    split(c01, operands.c);
    split(c23, operands.c + 2);
    Registers accumulators = exchange(site, "mma.sync", operands, wanted.finish, CALLER);
    Thread& self = *current_thread;
    if (self.lane == 0 && self.warp->block->checked) {
        events::tensor_core_mma(wanted.type, wanted.operations, CALLER);
    }
    return accumulators;
}

Registers ldmatrix(Site site, bool transposed, uint64_t row01, uint64_t row23) {
    Operands operands = {};
    split(row01, operands.a);
    split(row23, operands.a + 2);
    return exchange(site, "ldmatrix", operands,
                    transposed ? redistribute<Form::row, Form::transposed_pairs> : redistribute<Form::row, Form::pairs>,
                    CALLER);
}

Registers stmatrix(Site site, bool transposed, uint64_t r01, uint64_t r23) {
    Operands operands = {};
    split(r01, operands.a);
    split(r23, operands.a + 2);
    return exchange(site, "stmatrix", operands,
                    transposed ? redistribute<Form::transposed_pairs, Form::row> : redistribute<Form::pairs, Form::row>,
                    CALLER);
}

Registers movmatrix(Site site, uint64_t r01, uint64_t r23) {
    Operands operands = {};
    split(r01, operands.a);
    split(r23, operands.a + 2);
    return exchange(site, "movmatrix", operands, redistribute<Form::pairs, Form::transposed_pairs>, CALLER);
}

}  // namespace sim
