// Tensor cores: the last lane of a warp to arrive gathers the fragments of all, computes, and hands out the results.
#include "sim/tensor_core.h"

#include "scheduler.h"
#include "sim/error_codes.h"
#include "sim/small_float.h"
#include "sim/warp.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

constexpr unsigned lanes = 32;

// What a lane brings and takes away.
struct Operands {
    uint32_t a[4], b[2], c[4], d[4];
};

void split(uint64_t word, uint32_t* registers) {
    registers[0] = static_cast<uint32_t>(word);
    registers[1] = static_cast<uint32_t>(word >> 32);
}
uint64_t join(const uint32_t* registers) { return static_cast<uint64_t>(registers[1]) << 32 | registers[0]; }
double join_double(const uint32_t* registers) { return bit_cast<double>(join(registers)); }

// Tensor cores truncate the sum to a float, instead of rounding it.
float truncate_to_float(double value) {
    float rounded = static_cast<float>(value);
    uint32_t bits = bit_cast<uint32_t>(rounded);
    double excess = static_cast<double>(rounded) - value;
    bool too_large = value > 0 ? excess > 0 : excess < 0;
    if (too_large && (bits & 0x7f800000) != 0x7f800000) bits -= 1;
    return (bits & 0x7fffffff) > 0x7f800000 ? bit_cast<float>(0x7fffffffu) : bit_cast<float>(bits);
}

// How registers hold elements. `per_register` elements are neighbours along k.
struct HalfElements {
    static constexpr unsigned per_register = 2;
    static double get(uint32_t word, unsigned i) {
        return static_cast<double>(F16::decode(static_cast<uint16_t>(word >> (16 * i))));
    }
};
struct Bfloat16Elements {
    static constexpr unsigned per_register = 2;
    static double get(uint32_t word, unsigned i) {
        return static_cast<double>(BF16::decode(static_cast<uint16_t>(word >> (16 * i))));
    }
};
struct Tf32Elements {
    static constexpr unsigned per_register = 1;
    // The 13 lowest bits of the float are not looked at.
    static double get(uint32_t word, unsigned) { return static_cast<double>(bit_cast<float>(word & 0xffffe000u)); }
};
struct SignedBytes {
    static constexpr unsigned per_register = 4;
    static int32_t get(uint32_t word, unsigned i) { return static_cast<int8_t>(word >> (8 * i)); }
};
struct UnsignedBytes {
    static constexpr unsigned per_register = 4;
    static int32_t get(uint32_t word, unsigned i) { return static_cast<uint8_t>(word >> (8 * i)); }
};

// The four sums of a lane: rows g and g + 8, columns 2t and 2t + 1, with g = lane / 4 and t = lane % 4.
struct FloatSums {
    static double get(const uint32_t* c, unsigned i) { return static_cast<double>(bit_cast<float>(c[i])); }
    static void set(uint32_t* d, unsigned i, double value) { d[i] = bit_cast<uint32_t>(truncate_to_float(value)); }
};
struct HalfSums {
    static double get(const uint32_t* c, unsigned i) { return HalfElements::get(c[i / 2], i % 2); }
    static void set(uint32_t* d, unsigned i, double value) {
        uint32_t half = small_from_double<F16>(value);
        d[i / 2] = i % 2 == 0 ? half : (d[i / 2] & 0xffff) | half << 16;
    }
};
struct IntegerSums {
    static int32_t get(const uint32_t* c, unsigned i) { return static_cast<int32_t>(c[i]); }
    static void set(uint32_t* d, unsigned i, int32_t value) { d[i] = static_cast<uint32_t>(value); }
};

uint32_t multiply_add(uint32_t sum, int32_t a, int32_t b) { return sum + static_cast<uint32_t>(a * b); }  // wraps
double multiply_add(double sum, double a, double b) { return sum + a * b; }

template <unsigned K, typename Elements, typename Sums>
void multiply(void* const arguments[lanes], unsigned participants) {
    using Value = decltype(Elements::get(0, 0));
    constexpr unsigned per_register = Elements::per_register;
    constexpr unsigned block = 4 * per_register;  // of k that the four lanes of a row hold in one register
    constexpr unsigned blocks = K / block;
    static Operands nothing;
    Value a[16][K], b[K][8];
    decltype(multiply_add(0, Value(), Value())) sum[16][8];

    for (unsigned lane = 0; lane < lanes; ++lane) {
        const Operands& own = participants >> lane & 1 ? *static_cast<Operands*>(arguments[lane]) : nothing;
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned k = 0; k < blocks; ++k) {
            for (unsigned i = 0; i < per_register; ++i) {
                unsigned column = k * block + t * per_register + i;
                a[g][column] = Elements::get(own.a[2 * k], i);
                a[g + 8][column] = Elements::get(own.a[2 * k + 1], i);
                b[column][g] = Elements::get(own.b[k], i);
            }
        }
    }
    for (unsigned row = 0; row < 16; ++row) {
        for (unsigned column = 0; column < 8; ++column) sum[row][column] = 0;
        for (unsigned k = 0; k < K; ++k) {
            for (unsigned column = 0; column < 8; ++column) {
                sum[row][column] = multiply_add(sum[row][column], a[row][k], b[k][column]);
            }
        }
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(participants >> lane & 1)) continue;
        Operands& own = *static_cast<Operands*>(arguments[lane]);
        for (unsigned i = 0; i < 4; ++i) {
            auto total = sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] +
                         static_cast<decltype(sum[0][0] + 0)>(Sums::get(own.c, i));
            Sums::set(own.d, i, static_cast<Value>(total));
        }
    }
}

// m8n8k4 of doubles: a lane holds a(g, t), b(t, g) and the sums (g, 2t) and (g, 2t + 1).
void multiply_doubles(void* const arguments[lanes], unsigned participants) {
    static Operands nothing;
    double a[8][4], b[4][8];
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const Operands& own = participants >> lane & 1 ? *static_cast<Operands*>(arguments[lane]) : nothing;
        a[lane / 4][lane % 4] = join_double(own.a);
        b[lane % 4][lane / 4] = join_double(own.b);
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(participants >> lane & 1)) continue;
        Operands& own = *static_cast<Operands*>(arguments[lane]);
        for (unsigned i = 0; i < 2; ++i) {
            double sum = join_double(own.c + 2 * i);
            for (unsigned k = 0; k < 4; ++k) sum = __builtin_fma(a[lane / 4][k], b[k][lane % 4 * 2 + i], sum);
            split(bit_cast<uint64_t>(sum), own.d + 2 * i);
        }
    }
}

// One kind of product.
struct Product {
    WarpFinish finish;
    unsigned operations;  // additions and multiplications of a tile: 2 m n k
};

template <unsigned K, typename Elements, typename Sums>
Product m16n8() {
    return {multiply<K, Elements, Sums>, 2 * 16 * 8 * K};
}

// Each kind has its case, or this file does not compile. A number that is no kind can come from a kernel alone.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
Product product(Mma kind, const void* caller) {
    switch (kind) {
        case Mma::m16n8k16_f32_f16:
            return m16n8<16, HalfElements, FloatSums>();
        case Mma::m16n8k16_f32_bf16:
            return m16n8<16, Bfloat16Elements, FloatSums>();
        case Mma::m16n8k16_f16_f16:
            return m16n8<16, HalfElements, HalfSums>();
        case Mma::m16n8k8_f32_f16:
            return m16n8<8, HalfElements, FloatSums>();
        case Mma::m16n8k8_f32_bf16:
            return m16n8<8, Bfloat16Elements, FloatSums>();
        case Mma::m16n8k8_f16_f16:
            return m16n8<8, HalfElements, HalfSums>();
        case Mma::m16n8k8_f32_tf32:
            return m16n8<8, Tf32Elements, FloatSums>();
        case Mma::m16n8k4_f32_tf32:
            return m16n8<4, Tf32Elements, FloatSums>();
        case Mma::m16n8k32_s32_s8:
            return m16n8<32, SignedBytes, IntegerSums>();
        case Mma::m16n8k32_s32_u8:
            return m16n8<32, UnsignedBytes, IntegerSums>();
        case Mma::m16n8k16_s32_s8:
            return m16n8<16, SignedBytes, IntegerSums>();
        case Mma::m16n8k16_s32_u8:
            return m16n8<16, UnsignedBytes, IntegerSums>();
        case Mma::m8n8k4_f64:
            return {multiply_doubles, 2 * 8 * 8 * 4};
    }
    raise_fault(events::FaultKind::illegal_instruction, cudaErrorIllegalInstruction, nullptr, caller,
                "a product on tensor cores of a kind that there is not");
}
#pragma GCC diagnostic pop

// The 8x8 matrices of 16-bit elements that go through ldmatrix and its siblings: [matrix][row][column].
struct Matrices {
    uint16_t element[4][8][8];
};

// A lane's row of 16 bytes: row lane % 8 of matrix lane / 8.
void put_row(Matrices& matrices, unsigned lane, const uint32_t* words) {
    for (unsigned i = 0; i < 8; ++i) {
        matrices.element[lane / 8][lane % 8][i] = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
    }
}
void get_row(const Matrices& matrices, unsigned lane, uint32_t* words) {
    const uint16_t* row = matrices.element[lane / 8][lane % 8];
    for (unsigned i = 0; i < 4; ++i) words[i] = static_cast<uint32_t>(row[2 * i + 1]) << 16 | row[2 * i];
}
// A lane's pair of each matrix: (g, 2t) and (g, 2t + 1), or of the transposed one.
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

// `caller` is where the kernel called: findings name that place.
Registers meet(Site site, const char* name, Operands& operands, WarpFinish finish, const void* caller) {
    warp_exchange_from(site, name, ~0u, &operands, finish, caller);
    return Registers{join(operands.d), join(operands.d + 2)};
}

}  // namespace

Registers mma(Site site, Mma kind, uint64_t a01, uint64_t a23, uint64_t b01, uint64_t c01, uint64_t c23) {
    Product wanted = product(kind, CALLER);
    Operands operands = {};
    split(a01, operands.a);
    split(a23, operands.a + 2);
    split(b01, operands.b);
    split(c01, operands.c);
    split(c23, operands.c + 2);
    Registers sums = meet(site, "mma.sync", operands, wanted.finish, CALLER);
    Thread& self = *current_thread;
    if (self.lane == 0 && self.warp->block->launch->checks_enabled) {
        events::tensor_product(*self.warp, wanted.operations, CALLER);
    }
    return sums;
}

Registers ldmatrix(Site site, bool transposed, uint64_t row01, uint64_t row23) {
    Operands operands = {};
    split(row01, operands.a);
    split(row23, operands.a + 2);
    return meet(site, "ldmatrix", operands,
                transposed ? redistribute<Form::row, Form::transposed_pairs> : redistribute<Form::row, Form::pairs>,
                CALLER);
}

Registers stmatrix(Site site, bool transposed, uint64_t r01, uint64_t r23) {
    Operands operands = {};
    split(r01, operands.a);
    split(r23, operands.a + 2);
    return meet(site, "stmatrix", operands,
                transposed ? redistribute<Form::transposed_pairs, Form::row> : redistribute<Form::pairs, Form::row>,
                CALLER);
}

Registers movmatrix(Site site, uint64_t r01, uint64_t r23) {
    Operands operands = {};
    split(r01, operands.a);
    split(r23, operands.a + 2);
    return meet(site, "movmatrix", operands, redistribute<Form::pairs, Form::transposed_pairs>, CALLER);
}

}  // namespace sim
