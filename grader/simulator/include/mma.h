// nvcuda::wmma: matrix fragments of a warp, and their mma on the tensor cores.
//
// CUDA does not specify which lane holds which element. This implementation follows nvcc's code for sm_80 to sm_90: a
// fragment is a set of 8x8 tiles, and in each of them lane 4g + t holds the elements (g, 2t) and (g, 2t + 1), which is
// the layout of mma.sync. Loads and stores access memory with the same lanes and widths as nvcc's code, so requests,
// sectors and bank conflicts are counted as on the hardware:
//
// clang-format off
// - f16 operands in shared memory: ldmatrix, where a lane reads 16 bytes, a row of a tile.
// - Other 16-bit elements: a lane reads 32 bits for each tile. They are transposed in registers where needed.
// - f32 accumulators in row-major memory: a lane accesses 64 bits for each tile.
// - f32 accumulators in column-major memory, and tf32: a lane accesses 32 bits for each element.
// clang-format on
//
// The widths for other types were not compared with nvcc: 8-bit operands are loaded as 32 bits if they are contiguous
// along k, and byte by byte otherwise. f64 is loaded element by element.
//
// An mma of 16x16x16 is two mma.sync.m16n8k16, as on the hardware. 8x32x16 is 32x8x16 with exchanged operands: matrix_b
// is operand A of mma.sync, and the accumulators are transposed.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "sim/collective.h"
#include "sim/shared.h"
#include "sim/tensor_core.h"

namespace nvcuda {
namespace wmma {

// The matrix of a fragment, and its layout in memory.
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32;
}

namespace detail {

using ::sim::two_words;

template <typename A, typename B>
constexpr bool is_same = std::is_same<A, B>::value;

// The rows, columns and order of the 8x8 tiles of a fragment. In a tile, g = lane / 4 is the index of the row. The
// index of a row is m for mma.sync's operand A and n for its operand B.
template <typename Use, int M, int N, int K, typename T>
struct Shape {
    static constexpr bool is_a = is_same<Use, matrix_a>;
    static constexpr bool is_b = is_same<Use, matrix_b>;
    static constexpr bool is_accumulator = is_same<Use, accumulator>;
    static constexpr bool is_half = is_same<T, __half>;
    static constexpr bool is_bfloat16 = is_same<T, __nv_bfloat16>;
    static constexpr bool is_tf32 = is_same<T, precision::tf32>;
    static constexpr bool is_float = is_same<T, float>;
    static constexpr bool is_int8 = is_same<T, signed char> || is_same<T, unsigned char>;
    static constexpr bool is_int = is_same<T, int>;
    static constexpr bool is_double = is_same<T, double>;

    static constexpr bool shape_of_16_bits =
        K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32));
    static constexpr bool shape_of_tf32 = M == 16 && N == 16 && K == 8;
    static constexpr bool shape_of_double = M == 8 && N == 8 && K == 4;
    static constexpr bool exists = is_accumulator ? (shape_of_16_bits && (is_half || is_float || is_int)) ||
                                                        (shape_of_tf32 && is_float) || (shape_of_double && is_double)
                                                  : (shape_of_16_bits && (is_half || is_bfloat16 || is_int8)) ||
                                                        (shape_of_tf32 && is_tf32) || (shape_of_double && is_double);

    static constexpr bool operands_exchanged = M == 8 && N == 32;
    static constexpr bool is_operand_a = operands_exchanged ? is_b : is_a;
    static constexpr int rows = is_accumulator ? (operands_exchanged ? N : M) : (is_a ? M : N);
    static constexpr int columns = is_accumulator ? (operands_exchanged ? M : N) : K;
    static constexpr int elements = rows * columns / 32;  // number of elements that each lane holds
    // On sm_70 a lane holds 16 elements of an f16 operand. CUDA keeps that num_elements on later architectures; the
    // elements beyond `elements` are copies.
    static constexpr int stored = !is_accumulator && is_half ? 16 : elements;

    // Returns the first row of the tile that register r belongs to. The registers of one mma.sync are adjacent: operand
    // A and the accumulators take two tiles below each other first, operand B takes two tiles along k.
    static constexpr int tiles = rows * columns / 64;
    static constexpr bool down_first = is_operand_a || is_accumulator;
    static constexpr int row_of(int r) { return down_first ? 16 * (r / (2 * across)) + 8 * (r % 2) : 8 * (r / across); }
    static constexpr int column_of(int r) { return down_first ? 8 * (r / 2 % across) : 8 * (r % across); }
    static constexpr int across = columns / 8;
};

}  // namespace detail

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment {
    typedef detail::Shape<Use, M, N, K, T> Shape;
    static_assert(
        Shape::exists,
        "no such fragment: f16, bf16 and 8-bit integers come as 16x16x16, 32x8x16 and 8x32x16, tf32 as 16x16x8, "
        "f64 as 8x8x4");
    static_assert(Shape::is_accumulator == detail::is_same<Layout, void>,
                  "matrix_a and matrix_b need row_major or col_major, an accumulator has neither");

  public:
    typedef T element_type;
    typedef typename std::conditional<Shape::is_tf32, float, T>::type storage_element_type;
    enum { num_elements = Shape::stored, num_storage_elements = Shape::stored };

    storage_element_type x[num_storage_elements];
};

namespace detail {

// --- registers ---

template <typename T>
SIM_INLINE uint32_t pack(T low, T high) {
    return static_cast<uint32_t>(high.bits) << 16 | low.bits;
}
template <typename T>
SIM_INLINE void unpack(uint32_t word, T& low, T& high) {
    low.bits = static_cast<uint16_t>(word);
    high.bits = static_cast<uint16_t>(word >> 16);
}

// Words `first` and `first + 1` of a fragment, in the format of the tensor cores.
template <typename T>
SIM_INLINE uint64_t words(const T* x, int first) {
    if constexpr (sizeof(T) == 2)
        return two_words(pack(x[2 * first], x[2 * first + 1]), pack(x[2 * first + 2], x[2 * first + 3]));
    else
        return two_words(::sim::bit_cast<uint32_t>(x[first]), ::sim::bit_cast<uint32_t>(x[first + 1]));
}

// --- memory ---

typedef uint32_t Word __attribute__((may_alias));
typedef uint64_t DoubleWord __attribute__((may_alias));
struct Lane {
    int g, t;
    SIM_INLINE Lane() : g(static_cast<int>(::sim::lane_index()) / 4), t(static_cast<int>(::sim::lane_index()) % 4) {}
};

// The address of an element. `along`: a row is contiguous in memory, otherwise a column.
template <typename T>
SIM_INLINE T* element(T* memory, unsigned ldm, bool along, int row, int column) {
    int line = along ? row : column, place = along ? column : row;
    return memory + static_cast<size_t>(line) * ldm + place;
}
// The address of the first element of the tile that register r belongs to.
template <typename Shape, typename T>
SIM_INLINE T* tile(T* memory, unsigned ldm, bool along, int r) {
    return element(memory, ldm, along, Shape::row_of(r), Shape::column_of(r));
}

// Loads 16-bit elements. If a row of the tile is not contiguous, the tile is transposed in registers.
template <typename Shape, typename T>
SIM_INLINE void load_words(T* x, const T* memory, unsigned ldm, bool along, ::sim::Site site) {
    Lane lane;
    uint32_t word[Shape::tiles];
    for (int r = 0; r < Shape::tiles; ++r) {
        const T* from = tile<Shape>(memory, ldm, along, r);
        word[r] = *reinterpret_cast<const Word*>(element(from, ldm, true, lane.g, 2 * lane.t));
    }
    for (int r = 0; r < Shape::tiles; r += 2) {
        if (!along) {
            ::sim::Registers moved = ::sim::movmatrix(site, two_words(word[r], word[r + 1]), 0);
            word[r] = static_cast<uint32_t>(moved.r01);
            word[r + 1] = static_cast<uint32_t>(moved.r01 >> 32);
        }
        for (int i = 0; i < 2; ++i) unpack(word[r + i], x[2 * (r + i)], x[2 * (r + i) + 1]);
    }
}

template <typename Shape, typename T>
SIM_INLINE void store_words(T* memory, const T* x, unsigned ldm, bool along, ::sim::Site site) {
    Lane lane;
    for (int r = 0; r < Shape::tiles; r += 2) {
        uint64_t pair = words(x, r);
        if (!along) pair = ::sim::movmatrix(site, pair, 0).r01;
        for (int i = 0; i < 2; ++i) {
            T* to = element(tile<Shape>(memory, ldm, along, r + i), ldm, true, lane.g, 2 * lane.t);
            *reinterpret_cast<Word*>(to) = static_cast<uint32_t>(pair >> (32 * i));
        }
    }
}

// One ldmatrix loads four tiles, or two: then only half of the lanes provide addresses.
template <typename Shape, typename T>
SIM_INLINE void load_with_ldmatrix(T* x, const T* memory, unsigned ldm, bool along, ::sim::Site site) {
    constexpr int count = Shape::tiles < 4 ? Shape::tiles : 4;
    int lane = static_cast<int>(::sim::lane_index());
    for (int first = 0; first < Shape::tiles; first += count) {
        uint4 row = {0u, 0u, 0u, 0u};
        if (lane < 8 * count) {
            const T* from = tile<Shape>(memory, ldm, along, first + lane / 8);
            row = *reinterpret_cast<const uint4*>(element(from, ldm, true, lane % 8, 0));
        }
        ::sim::Registers pairs = ::sim::ldmatrix(site, !along, two_words(row.x, row.y), two_words(row.z, row.w));
        for (int i = 0; i < count; ++i) {
            uint64_t both = i < 2 ? pairs.r01 : pairs.r23;
            unpack(static_cast<uint32_t>(both >> (32 * (i % 2))), x[2 * (first + i)], x[2 * (first + i) + 1]);
        }
    }
}

// Accumulators of 32 and 64 bits.
template <typename Shape, typename T>
SIM_INLINE void load_sums(T* x, const T* memory, unsigned ldm, bool along) {
    Lane lane;
    for (int r = 0; r < Shape::tiles; ++r) {
        const T* from = tile<Shape>(memory, ldm, along, r);
        if constexpr (sizeof(T) == 4) {
            if (along) {
                uint64_t pair = *reinterpret_cast<const DoubleWord*>(element(from, ldm, along, lane.g, 2 * lane.t));
                x[2 * r] = ::sim::bit_cast<T>(static_cast<uint32_t>(pair));
                x[2 * r + 1] = ::sim::bit_cast<T>(static_cast<uint32_t>(pair >> 32));
                continue;
            }
        }
        for (int i = 0; i < 2; ++i) x[2 * r + i] = *element(from, ldm, along, lane.g, 2 * lane.t + i);
    }
}
template <typename Shape, typename T>
SIM_INLINE void store_sums(T* memory, const T* x, unsigned ldm, bool along) {
    Lane lane;
    for (int r = 0; r < Shape::tiles; ++r) {
        T* to = tile<Shape>(memory, ldm, along, r);
        if constexpr (sizeof(T) == 4) {
            if (along) {
                *reinterpret_cast<DoubleWord*>(element(to, ldm, along, lane.g, 2 * lane.t)) = words(x, 2 * r);
                continue;
            }
        }
        for (int i = 0; i < 2; ++i) *element(to, ldm, along, lane.g, 2 * lane.t + i) = x[2 * r + i];
    }
}

// Loads tf32 operands of 16 rows and k = 8. A lane holds the elements (g, t), (g + 8, t), (g, t + 4) and (g + 8, t +
// 4). Operand A has them in this order, operand B has the second and the third exchanged.
template <typename Shape>
SIM_INLINE void load_tf32(float* x, const float* memory, unsigned ldm, bool along) {
    Lane lane;
    for (int i = 0; i < 4; ++i) {
        int down = Shape::is_operand_a ? i % 2 : i / 2, right = Shape::is_operand_a ? i / 2 : i % 2;
        x[i] = *element(memory, ldm, along, lane.g + 8 * down, lane.t + 4 * right);
    }
}

// 8-bit operands: register r of a lane holds four elements along k of row 8r + g.
template <typename Shape, typename T>
SIM_INLINE void load_bytes(T* x, const T* memory, unsigned ldm, bool along) {
    Lane lane;
    for (int r = 0; r < Shape::rows / 8; ++r) {
        const T* from = element(memory, ldm, along, 8 * r + lane.g, 4 * lane.t);
        uint32_t word = along ? *reinterpret_cast<const Word*>(from) : 0;
        for (int i = 0; i < 4; ++i)
            x[4 * r + i] = along ? static_cast<T>(word >> (8 * i)) : *element(from, ldm, false, 0, i);
    }
}
template <typename T>
SIM_INLINE uint32_t byte_word(const T* x, int r) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(static_cast<unsigned char>(x[4 * r + i])) << (8 * i);
    return word;
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------- functions

template <typename Use, int M, int N, int K, typename T, typename Layout>
SIM_INLINE void fill_fragment(fragment<Use, M, N, K, T, Layout>& f,
                              const typename fragment<Use, M, N, K, T, Layout>::storage_element_type& value) {
    typename fragment<Use, M, N, K, T, Layout>::storage_element_type copy = value;
    for (int i = 0; i < f.num_elements; ++i) f.x[i] = copy;
}

// `ldm` is the distance in elements between consecutive rows (or columns, for col_major).
template <typename Use, int M, int N, int K, typename T, typename Layout>
SIM_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f,
                                 const typename fragment<Use, M, N, K, T, Layout>::storage_element_type* memory,
                                 unsigned ldm, ::sim::Site site = SIM_CALLER) {
    typedef detail::Shape<Use, M, N, K, T> Shape;
    static_assert(!Shape::is_accumulator, "loading an accumulator takes its layout as a fourth argument");
    constexpr bool along = detail::is_same<Layout, row_major> == Shape::is_a;
    if constexpr (Shape::is_tf32) {
        detail::load_tf32<Shape>(f.x, memory, ldm, along);
    } else if constexpr (Shape::is_int8) {
        detail::load_bytes<Shape>(f.x, memory, ldm, along);
    } else if constexpr (Shape::is_double) {
        detail::Lane lane;
        f.x[0] = *detail::element(memory, ldm, along, lane.g, lane.t);
    } else {
        if (Shape::is_half && ::sim::is_shared(memory)) {
            detail::load_with_ldmatrix<Shape>(f.x, memory, ldm, along, site);
        } else {
            detail::load_words<Shape>(f.x, memory, ldm, along, site);
        }
        for (int i = Shape::elements; i < Shape::stored; ++i) f.x[i] = f.x[i % Shape::elements];
    }
}

template <int M, int N, int K, typename T>
SIM_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* memory, unsigned ldm, layout_t layout,
                                 ::sim::Site site = SIM_CALLER) {
    typedef detail::Shape<accumulator, M, N, K, T> Shape;
    bool along = (layout == mem_row_major) != Shape::operands_exchanged;
    if constexpr (Shape::is_half) {
        detail::load_words<Shape>(f.x, memory, ldm, along, site);
    } else {
        detail::load_sums<Shape>(f.x, memory, ldm, along);
    }
}

template <int M, int N, int K, typename T>
SIM_INLINE void store_matrix_sync(T* memory, const fragment<accumulator, M, N, K, T>& f, unsigned ldm, layout_t layout,
                                  ::sim::Site site = SIM_CALLER) {
    typedef detail::Shape<accumulator, M, N, K, T> Shape;
    bool along = (layout == mem_row_major) != Shape::operands_exchanged;
    if constexpr (Shape::is_half) {
        detail::store_words<Shape>(memory, f.x, ldm, along, site);
    } else {
        detail::store_sums<Shape>(memory, f.x, ldm, along);
    }
}

namespace detail {

// Executes one of the two mma.sync of a wmma operation. Its accumulators are the lane's 4 * part to 4 * part + 3.
template <typename D, typename C>
SIM_INLINE void multiply_part(::sim::Site site, ::sim::Mma to_floats, D* d, uint64_t a01, uint64_t a23, uint64_t b01,
                              const C* c) {
    if constexpr (is_same<D, __half> && is_same<C, __half>) {
        ::sim::Registers result = ::sim::mma(site, ::sim::Mma::m16n8k16_f16_f16_f16, a01, a23, b01, words(c, 0), 0);
        unpack(static_cast<uint32_t>(result.r01), d[0], d[1]);
        unpack(static_cast<uint32_t>(result.r01 >> 32), d[2], d[3]);
    } else {
        float start[4];
        for (int i = 0; i < 4; ++i) start[i] = static_cast<float>(c[i]);
        ::sim::Registers result = ::sim::mma(site, to_floats, a01, a23, b01, words(start, 0), words(start, 2));
        for (int i = 0; i < 4; ++i) {
            uint64_t pair = i < 2 ? result.r01 : result.r23;
            d[i] = D(::sim::bit_cast<float>(static_cast<uint32_t>(pair >> (32 * (i % 2)))));
        }
    }
}

}  // namespace detail

// d = a * b + c
template <int M, int N, int K, typename T, typename LayoutA, typename LayoutB, typename D, typename C>
SIM_INLINE void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                         const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c,
                         ::sim::Site site = SIM_CALLER) {
    typedef detail::Shape<matrix_a, M, N, K, T> Shape;
    static_assert(Shape::is_half || (detail::is_same<D, float> && detail::is_same<C, float>),
                  "only products of f16 can have accumulators of f16");
    constexpr ::sim::Mma kind = Shape::is_tf32   ? ::sim::Mma::m16n8k8_f32_tf32_tf32
                                : Shape::is_half ? ::sim::Mma::m16n8k16_f32_f16_f16
                                                 : ::sim::Mma::m16n8k16_f32_bf16_bf16;
    for (int part = 0; part < 2; ++part) {
        // Shape 32x8 has two tiles of operand A and one of B; 16x16 has one of A and two of B. A lane holds four words
        // of a tile of A and two words of a tile of B.
        const auto* operand_a = Shape::operands_exchanged ? b.x : a.x;
        const auto* operand_b = Shape::operands_exchanged ? a.x : b.x;
        int first_a = M == 16 ? 0 : 4 * part, first_b = M == 16 ? 2 * part : 0;
        detail::multiply_part(site, kind, d.x + 4 * part, detail::words(operand_a, first_a),
                              detail::words(operand_a, first_a + 2), detail::words(operand_b, first_b), c.x + 4 * part);
    }
}

// d = a * b + c for 8-bit integers. `saturates`: sums are clamped to the range of int; otherwise they wrap.
template <int M, int N, int K, typename T, typename LayoutA, typename LayoutB>
SIM_INLINE void mma_sync(fragment<accumulator, M, N, K, int>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                         const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, int>& c,
                         bool saturates = false, ::sim::Site site = SIM_CALLER) {
    typedef detail::Shape<matrix_a, M, N, K, T> Shape;
    constexpr ::sim::Mma kind =
        detail::is_same<T, signed char> ? ::sim::Mma::m16n8k16_s32_s8_s8 : ::sim::Mma::m16n8k16_s32_u8_u8;
    for (int part = 0; part < 2; ++part) {
        const auto* operand_a = Shape::operands_exchanged ? b.x : a.x;
        const auto* operand_b = Shape::operands_exchanged ? a.x : b.x;
        int first_a = M == 16 ? 0 : 2 * part, first_b = M == 16 ? part : 0;
        uint64_t words_a =
            detail::two_words(detail::byte_word(operand_a, first_a), detail::byte_word(operand_a, first_a + 1));
        ::sim::Registers sums = ::sim::mma(site, saturates ? ::sim::saturating(kind) : kind, words_a, 0,
                                           detail::byte_word(operand_b, first_b), detail::words(c.x, 4 * part),
                                           detail::words(c.x, 4 * part + 2));
        for (int i = 0; i < 4; ++i)
            d.x[4 * part + i] = static_cast<int>((i < 2 ? sums.r01 : sums.r23) >> (32 * (i % 2)));
    }
}

// d = a * b + c for f64.
template <typename LayoutA, typename LayoutB>
SIM_INLINE void mma_sync(fragment<accumulator, 8, 8, 4, double>& d,
                         const fragment<matrix_a, 8, 8, 4, double, LayoutA>& a,
                         const fragment<matrix_b, 8, 8, 4, double, LayoutB>& b,
                         const fragment<accumulator, 8, 8, 4, double>& c, ::sim::Site site = SIM_CALLER) {
    ::sim::Registers sums = ::sim::mma(site, ::sim::Mma::m8n8k4_f64_f64_f64, ::sim::bit_cast<uint64_t>(a.x[0]), 0,
                                       ::sim::bit_cast<uint64_t>(b.x[0]), ::sim::bit_cast<uint64_t>(c.x[0]),
                                       ::sim::bit_cast<uint64_t>(c.x[1]));
    d.x[0] = ::sim::bit_cast<double>(sums.r01);
    d.x[1] = ::sim::bit_cast<double>(sums.r23);
}

// Rounds to the nearest number with tf32's 10 mantissa bits; halfway cases round away from zero.
SIM_INLINE float __float_to_tf32(float value) {
    uint32_t bits = ::sim::bit_cast<uint32_t>(value);
    if ((bits & 0x7f800000) == 0x7f800000) return (bits & 0x7fffff) ? ::sim::bit_cast<float>(0x7fffffffu) : value;
    return ::sim::bit_cast<float>((bits + 0x1000) & 0xffffe000u);
}

}  // namespace wmma
}  // namespace nvcuda

#ifdef SIM_PTX_H
namespace sim {
namespace ptx {

// wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k16.shared.bf16: loads the words of a 16-bit fragment by ldmatrix. ptxas
// does the same if the instruction names the shared state space. (For wmma::load_matrix_sync, nvcc emits an instruction
// that does not name the state space.)
template <bool OF_A, bool ROWS, typename D, typename A, typename P>
SIM_INLINE void wmma_load_bf16(D& d0, D& d1, D& d2, D& d3, A address, P ldm, Site site = SIM_CALLER) {
    namespace wmma = nvcuda::wmma;
    typedef typename std::conditional<OF_A, wmma::matrix_a, wmma::matrix_b>::type Use;
    __nv_bfloat16 x[8];
    wmma::detail::load_with_ldmatrix<wmma::detail::Shape<Use, 16, 16, 16, __nv_bfloat16>>(
        x, reinterpret_cast<const __nv_bfloat16*>(Shared::pointer(address)), static_cast<unsigned>(ldm), ROWS == OF_A,
        site);
    put(d0, wmma::detail::pack(x[0], x[1]));
    put(d1, wmma::detail::pack(x[2], x[3]));
    put(d2, wmma::detail::pack(x[4], x[5]));
    put(d3, wmma::detail::pack(x[6], x[7]));
}

}  // namespace ptx
}  // namespace sim
#endif
