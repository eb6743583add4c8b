// The PTX instructions of inline assembly, as functions.
//
// The front end turns each instruction of an asm statement into one call of a function here.
// grader/frontend/ptx_instructions.py maps instructions to functions; operands keep their order:
//
//   asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(a) : "r"(b), "r"(mask));
//   ::sim::ptx::shfl<::sim::Shuffle::exclusive_or>((a), (b), (mask), 0x1f, 0xffffffff);
//
// Results come first, by reference, into variables of any type of the right size. (Loads, ldmatrix and mma.sync take
// their results last.) PTX registers have a size but few type rules, so a float may be passed where 32 bits are
// expected. An address is a generic pointer or its number for global memory; for shared memory it is an offset in the
// block's shared window (__cvta_generic_to_shared).
//
// Modifiers that are hints (cache operators, eviction priorities, prefetch sizes) are dropped. ".approx" results are
// computed in full precision.
#pragma once

#define SIM_PTX_H 1  // mma.h tests this macro, and then adds wmma.load

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "sim/atomics.h"
#include "sim/barrier.h"
#include "sim/collective.h"
#include "sim/device.h"
#include "sim/math.h"
#include "sim/narrow_float.h"
#include "sim/shared.h"
#include "sim/tensor_core.h"

// The text of an asm statement after the compiler's expansion of macros.
#define SIM_SPELLED(...) #__VA_ARGS__
#define SIM_TEXT(...) SIM_SPELLED(__VA_ARGS__)
#define SIM_SAME_TEXT(statement, expanded)                                    \
    constexpr bool sim_expanded = ::sim::ptx::same_text(statement, expanded); \
    static_assert(sim_expanded, "a macro in this asm statement has several definitions: give it its own name")

namespace sim {
namespace ptx {

// Returns whether two texts differ in blanks only.
constexpr bool same_text(const char* first, const char* second) {
    for (;; ++first, ++second) {
        while (*first == ' ') ++first;
        while (*second == ' ') ++second;
        if (*first != *second) return false;
        if (!*first) return true;
    }
}

// ----------------------------------------------------------------------------------------------------------- operands

namespace detail {
template <typename To, typename From, bool SAME_KIND>
struct Convert {
    static SIM_INLINE To from(From value) { return static_cast<To>(value); }
};
template <typename To, typename From>
struct Convert<To, From, false> {
    static SIM_INLINE To from(From value) {
        static_assert(sizeof(To) == sizeof(From), "this PTX operand has another size than the instruction wants");
        return bit_cast<To>(value);
    }
};
template <typename T>
constexpr bool is_integer = std::is_integral<T>::value || std::is_enum<T>::value;
}  // namespace detail

// An input operand of type T. An integer register is converted to an integer T; otherwise the bits are kept.
template <typename T>
struct In {
    T value;
    template <typename U>
    SIM_INLINE In(U operand)
        : value(detail::Convert<
                T, U, std::is_same<T, U>::value || (detail::is_integer<T> && detail::is_integer<U>)>::from(operand)) {}
    SIM_INLINE operator T() const { return value; }
};

// Writes a T into a register. If the register is wider, the upper bits are zeros, or copies of the sign for a signed T.
template <typename T, typename D>
SIM_INLINE void put(D& destination, T value) {
    if constexpr (std::is_same<T, D>::value) {
        destination = value;
    } else if constexpr (detail::is_integer<T> && detail::is_integer<D>) {
        static_assert(sizeof(D) >= sizeof(T), "the result of this PTX instruction does not fit its register");
        destination = static_cast<D>(value);
    } else {
        static_assert(sizeof(D) == sizeof(T), "the result of this PTX instruction and its register differ in size");
        memcpy(static_cast<void*>(&destination), &value, sizeof(T));
    }
}

// The type of the PTX destination operand `_`, which discards the result of an instruction.
struct Sink {};
template <typename T>
SIM_INLINE void put(Sink&, T) {}
SIM_INLINE Sink& sink() {
    static Sink nothing;
    return nothing;
}

SIM_INLINE float f32(uint32_t bits) { return bit_cast<float>(bits); }
SIM_INLINE double f64(uint64_t bits) { return bit_cast<double>(bits); }

// [address + offset], in bytes.
template <typename T>
SIM_INLINE std::enable_if_t<std::is_integral<T>::value, T> at(T address, long long offset) {
    return static_cast<T>(address + static_cast<T>(offset));
}
template <typename T>
SIM_INLINE const char* at(const T* address, long long offset) {
    return reinterpret_cast<const char*>(address) + offset;
}

// The state spaces, which determine the meaning of an address.
struct Generic {
    template <typename T>
    static SIM_INLINE char* pointer(T* address) {
        return const_cast<char*>(reinterpret_cast<const volatile char*>(address));
    }
    template <typename T>
    static SIM_INLINE std::enable_if_t<std::is_integral<T>::value, char*> pointer(T address) {
        static_assert(sizeof(T) == 8, "an address in global memory has 64 bits: \"l\"(pointer)");
        return reinterpret_cast<char*>(static_cast<uintptr_t>(address));
    }
};
struct Global : Generic {};
struct Shared {
    template <typename T>
    static SIM_INLINE char* pointer(T address) {
        static_assert(std::is_integral<T>::value,
                      "an address in shared memory is a number: __cvta_generic_to_shared(pointer)");
        return static_cast<char*>(shared_window_address(static_cast<uint32_t>(address)));
    }
};
// The state space shared::cluster: the shared memory of any block of the cluster.
struct SharedCluster {
    template <typename T>
    static SIM_INLINE char* pointer(T address) {
        static_assert(std::is_integral<T>::value, "an address in shared memory is a number, such as mapa gives");
        return static_cast<char*>(shared_window_address(static_cast<uint32_t>(address), true));
    }
};

SIM_INLINE uint32_t first_word(uint64_t both) { return static_cast<uint32_t>(both); }
SIM_INLINE uint32_t second_word(uint64_t both) { return static_cast<uint32_t>(both >> 32); }

// ------------------------------------------------------------------------------------------------------ tensor cores

SIM_INLINE Registers words(In<uint32_t> r0, In<uint32_t> r1 = 0u, In<uint32_t> r2 = 0u, In<uint32_t> r3 = 0u) {
    return {two_words(r0, r1), two_words(r2, r3)};
}
SIM_INLINE uint32_t take_word(Registers& r) {
    uint32_t word = first_word(r.r01);
    r = {two_words(second_word(r.r01), first_word(r.r23)), r.r23 >> 32};
    return word;
}

// mma.sync. Each operand has up to four registers.
template <Mma KIND, typename... D>
SIM_INLINE void mma(Site site, Registers a, Registers b, Registers c, D&... d) {
    Registers sums = ::sim::mma(site, KIND, a.r01, a.r23, b.r01, c.r01, c.r23);
    (put(d, take_word(sums)), ...);
}
// m8n8k4 of doubles.
SIM_INLINE void mma_f64(double& d0, double& d1, double a, double b, double c0, double c1, Site site = SIM_CALLER) {
    Registers d = ::sim::mma(site, Mma::m8n8k4_f64_f64_f64, bit_cast<uint64_t>(a), 0, bit_cast<uint64_t>(b),
                             bit_cast<uint64_t>(c0), bit_cast<uint64_t>(c1));
    d0 = bit_cast<double>(d.r01);
    d1 = bit_cast<double>(d.r23);
}

// ldmatrix: lanes 0-7 provide the row addresses of the first matrix, 8-15 of the second, ... Each of them reads its 16
// bytes here.
template <bool TRANSPOSED, typename A, typename... D>
SIM_INLINE void ldmatrix(Site site, A address, D&... d) {
    uint4 row = {0u, 0u, 0u, 0u};
    if (lane_index() < 8 * sizeof...(D)) row = *reinterpret_cast<const uint4*>(Shared::pointer(address));
    Registers r = ::sim::ldmatrix(site, TRANSPOSED, two_words(row.x, row.y), two_words(row.z, row.w));
    (put(d, take_word(r)), ...);
}
template <bool TRANSPOSED, typename A, typename... R>
SIM_INLINE void stmatrix(Site site, A address, R... registers) {
    Registers r = words(registers...), row = ::sim::stmatrix(site, TRANSPOSED, r.r01, r.r23);
    if (lane_index() < 8 * sizeof...(R)) {
        *reinterpret_cast<uint4*>(Shared::pointer(address)) =
            uint4{first_word(row.r01), second_word(row.r01), first_word(row.r23), second_word(row.r23)};
    }
}
template <typename D>
SIM_INLINE void movmatrix(D& d, In<uint32_t> a, Site site = SIM_CALLER) {
    put(d, first_word(::sim::movmatrix(site, two_words(a, 0), 0).r01));
}

// ------------------------------------------------------------------------------------------------ asynchronous copies

// cp.async writes 4, 8 or 16 bytes: `source_bytes` are copied, and the rest are zeros.
template <CacheOperator CACHE, typename S, typename G>
SIM_INLINE void cp_async(S shared, G global, int bytes, In<uint32_t> source_bytes) {
    uint32_t copied = source_bytes;
    size_t zeros = copied < static_cast<uint32_t>(bytes) ? static_cast<size_t>(bytes) - copied : 0;
    async_copy(Shared::pointer(shared), Global::pointer(global), static_cast<size_t>(bytes), zeros, CACHE);
}
template <CacheOperator CACHE, typename S, typename G>
SIM_INLINE void cp_async(S shared, G global, int bytes) {
    async_copy(Shared::pointer(shared), Global::pointer(global), static_cast<size_t>(bytes), 0, CACHE);
}
SIM_INLINE void cp_async_commit_group() { async_copy_commit(); }
SIM_INLINE void cp_async_wait_group(int groups) { async_copy_wait(static_cast<unsigned>(groups)); }
SIM_INLINE void cp_async_wait_all() {
    async_copy_commit();
    async_copy_wait(0);
}

// ----------------------------------------------------------------------------------------------- barriers and fences

SIM_INLINE void bar_sync(In<uint32_t> barrier, Site site = SIM_CALLER) {
    if (barrier.value == 0) {
        block_barrier(site);
    } else {
        named_barrier_sync(site, barrier, 0);
    }
}
SIM_INLINE void bar_sync(In<uint32_t> barrier, In<uint32_t> threads, Site site = SIM_CALLER) {
    named_barrier_sync(site, barrier, threads);
}
SIM_INLINE void bar_arrive(In<uint32_t> barrier, In<uint32_t> threads, Site site = SIM_CALLER) {
    named_barrier_arrive(site, barrier, threads);
}
SIM_INLINE void bar_warp_sync(In<uint32_t> mask, Site site = SIM_CALLER) { warp_barrier(site, mask); }
template <Scope SCOPE, MemoryOrder ORDER = MemoryOrder::acq_rel>
SIM_INLINE void fence() {
    ::sim::fence(SCOPE, ORDER);
}

// ---------------------------------------------------------------------------------------------------- loads and stores

// Registers of type T that one access loads or stores.
template <typename T, size_t COUNT>
struct AccessOf {
    typedef T type __attribute__((vector_size(COUNT * sizeof(T)), may_alias));
};
template <typename T>
struct AccessOf<T, 1> {
    typedef T type __attribute__((may_alias));
};

template <typename Space, typename T, typename A, typename... D>
SIM_INLINE void load(A address, D&... d) {
    typedef typename AccessOf<T, sizeof...(D)>::type All;
    All all = *reinterpret_cast<const All*>(Space::pointer(address));
    if constexpr (sizeof...(D) == 1) {
        put(d..., static_cast<T>(all));
    } else {
        int i = 0;
        (put(d, static_cast<T>(all[i++])), ...);
    }
}
// ld.global.nc.
template <typename Space, typename T, typename A, typename... D>
SIM_INLINE void load_read_only(A address, D&... d) {
    read_only_load(Space::pointer(address), sizeof...(D) * sizeof(T));
    load<Space, T>(address, d...);
}
template <typename Space, typename T, typename A, typename D>
SIM_INLINE void load_volatile(A address, D& d) {
    put(d, static_cast<T>(*reinterpret_cast<const volatile T*>(Space::pointer(address))));
}
template <typename Space, typename T, typename A, typename... V>
SIM_INLINE void store(A address, V... values) {
    typedef typename AccessOf<T, sizeof...(V)>::type All;
    *reinterpret_cast<All*>(Space::pointer(address)) = All{In<T>(values).value...};
}
template <typename Space, typename T, typename A>
SIM_INLINE void store_volatile(A address, In<T> value) {
    *reinterpret_cast<volatile T*>(Space::pointer(address)) = value;
}

// ------------------------------------------------------------------------------------------------------------ atomics

template <typename Space, typename T, AtomicOp OP, Scope SCOPE, MemoryOrder ORDER, typename D, typename A>
SIM_INLINE void atom(D& d, A address, In<T> value) {
    put(d, atomic_of(OP, Space::pointer(address), value.value, SCOPE, ORDER));
}
template <typename Space, typename T, AtomicOp OP, Scope SCOPE, MemoryOrder ORDER, typename A>
SIM_INLINE void red(A address, In<T> value) {
    atomic_of(OP, Space::pointer(address), value.value, SCOPE, ORDER);
}
template <typename Space, typename T, Scope SCOPE, MemoryOrder ORDER, typename D, typename A>
SIM_INLINE void atom_cas(D& d, A address, In<T> compare, In<T> value) {
    constexpr MemoryOrder failure = acquires(ORDER) ? MemoryOrder::acquire : MemoryOrder::relaxed;
    if constexpr (sizeof(T) == 4) {
        put(d, compare_and_swap_32(Space::pointer(address), compare, value, SCOPE, ORDER, failure));
    } else {
        put(d, static_cast<T>(compare_and_swap_64(Space::pointer(address), compare, value, SCOPE, ORDER, failure)));
    }
}
// ld.acquire, ld.relaxed, st.release, st.relaxed.
template <typename Space, typename T, Scope SCOPE, MemoryOrder ORDER, typename A, typename... D>
SIM_INLINE void load_atomic(A address, D&... d) {  // two separate loads for .v2
    const T* next = reinterpret_cast<const T*>(Space::pointer(address));
    (put(d, atomic_of(AtomicOp::load, const_cast<T*>(next++), T(), SCOPE, ORDER)), ...);
}
template <typename Space, typename T, Scope SCOPE, MemoryOrder ORDER, typename A>
SIM_INLINE void store_atomic(A address, In<T> value) {
    atomic_of(AtomicOp::store, Space::pointer(address), value.value, SCOPE, ORDER);
}

// --------------------------------------------------------------------------------------------------- lanes of a warp

// shfl.sync: `clamp` holds the segment mask in bits 8-12 and the last lane in bits 0-4. `inside` receives whether the
// source lane was in range.
template <Shuffle KIND>
SIM_INLINE bool source_inside(uint32_t argument, uint32_t clamp) {
    uint32_t lane = lane_index(), segment = clamp >> 8 & 31, offset = argument & 31;
    uint32_t last = (lane & segment) | (clamp & 31 & ~segment);
    if (KIND == Shuffle::up) return static_cast<int>(lane - offset) >= static_cast<int>(last);
    if (KIND == Shuffle::down) return lane + offset <= last;
    if (KIND == Shuffle::exclusive_or) return (lane ^ offset) <= last;
    return ((lane & segment) | (offset & ~segment)) <= last;
}
template <Shuffle KIND, typename D>
SIM_INLINE void shfl(D& d, In<uint32_t> value, In<uint32_t> argument, In<uint32_t> clamp, In<uint32_t> mask,
                     Site site = SIM_CALLER) {
    uint32_t width = 32 - (clamp.value >> 8 & 31);
    put(d, static_cast<uint32_t>(warp_shuffle(site, KIND, mask, value.value, argument, width)));
}
template <Shuffle KIND, typename D>
SIM_INLINE void shfl(D& d, bool& inside, In<uint32_t> value, In<uint32_t> argument, In<uint32_t> clamp,
                     In<uint32_t> mask, Site site = SIM_CALLER) {
    inside = source_inside<KIND>(argument, clamp);
    shfl<KIND>(d, value, argument, clamp, mask, site);
}
template <Vote KIND, typename T, typename D>
SIM_INLINE void vote(D& d, bool predicate, In<uint32_t> mask, Site site = SIM_CALLER) {
    put(d, static_cast<T>(warp_vote(site, KIND, mask, predicate)));
}
template <typename D>
SIM_INLINE void activemask(D& d) {
    put(d, active_mask());
}
template <typename T, typename D>
SIM_INLINE void match_any(D& d, In<T> value, In<uint32_t> mask, Site site = SIM_CALLER) {
    put(d, warp_match_any(site, mask, static_cast<uint64_t>(value.value)));
}
template <Reduce KIND, typename T, typename D>
SIM_INLINE void redux(D& d, In<T> value, In<uint32_t> mask, Site site = SIM_CALLER) {
    put(d, static_cast<T>(warp_reduce(site, KIND, mask, static_cast<uint32_t>(value.value), std::is_signed<T>::value)));
}
// elect.sync: the lowest lane of the mask.
template <typename D>
SIM_INLINE void elect(D& d, bool& is_elected, In<uint32_t> mask, Site site = SIM_CALLER) {
    uint32_t lanes = warp_vote(site, Vote::ballot, mask, true);
    put(d, static_cast<uint32_t>(__builtin_ctz(lanes)));
    is_elected = lane_index() == static_cast<unsigned>(__builtin_ctz(lanes));
}

// ------------------------------------------------------------------------------------------------- moves, conversions

template <typename T, typename D>
SIM_INLINE void mov(D& d, In<T> a) {
    put(d, a.value);
}
// mov.b32 d, {low, high} and the reverse; Half is the type of a half.
template <typename Half, typename Whole, typename D>
SIM_INLINE void pack(D& d, In<Half> low, In<Half> high) {
    put(d, static_cast<Whole>(static_cast<Whole>(high.value) << (8 * sizeof(Half)) | low.value));
}
template <typename Half, typename Whole, typename D>
SIM_INLINE void unpack(D& low, D& high, In<Whole> a) {
    put(low, static_cast<Half>(a.value));
    put(high, static_cast<Half>(a.value >> (8 * sizeof(Half))));
}
template <typename D, typename A>
SIM_INLINE void cvta_to_shared(D& d, A address) {
    put(d, static_cast<uint64_t>(shared_window_offset(Generic::pointer(address))));
}
template <typename D, typename A>
SIM_INLINE void cvta_to_global(D& d, A address) {
    put(d, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(Generic::pointer(address))));
}
template <typename D, typename A>
SIM_INLINE void cvta_shared(D& d, A address) {
    put(d, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(SharedCluster::pointer(address))));
}

// cvt between numbers. f16 and bf16 registers hold bits.
template <Rounding MODE, typename To, typename From, typename D>
SIM_INLINE void cvt(D& d, In<From> a) {
    if constexpr (detail::is_integer<To> != detail::is_integer<From>) SIM_COUNTS(conversion);
    if constexpr (detail::is_integer<To> && detail::is_integer<From>) {
        put(d, static_cast<To>(a.value));
    } else if constexpr (detail::is_integer<To>) {
        put(d, saturating_integer<To>(static_cast<double>(a.value), MODE));
    } else if constexpr (std::is_same<To, float>::value && detail::is_integer<From>) {
        put(d, float_from_integer(a.value, MODE));
    } else if constexpr (std::is_same<To, float>::value) {
        put(d, round_to_float(static_cast<double>(a.value), MODE));
    } else {
        put(d, static_cast<To>(a.value));
    }
}
template <typename Format, Rounding MODE, typename D>
SIM_INLINE void cvt_to_small(D& d, In<float> a) {
    put(d, small_from_double<Format>(static_cast<double>(a.value), MODE));
}
template <typename Format, typename D>
SIM_INLINE void cvt_from_small(D& d, In<uint16_t> a) {
    put(d, Format::to_float(a.value));
}
// cvt.rn.f16x2.f32 d, high, low
template <typename Format, bool RELU, typename D>
SIM_INLINE void cvt_to_pair(D& d, In<float> high, In<float> low) {
    uint32_t h = Format::from_float(RELU && high.value < 0 ? 0.0f : high.value);
    uint32_t l = Format::from_float(RELU && low.value < 0 ? 0.0f : low.value);
    put(d, h << 16 | l);
}
// cvt.rn.satfinite.e4m3x2.f32 d, high, low
template <typename Format, bool RELU, typename D>
SIM_INLINE void cvt_to_narrow_pair(D& d, In<float> high, In<float> low) {
    uint32_t h = Format::encode(RELU && high.value < 0 ? 0.0f : high.value, true, true);
    uint32_t l = Format::encode(RELU && low.value < 0 ? 0.0f : low.value, true, true);
    put(d, static_cast<uint16_t>(h << 8 | l));
}
// cvt.rn.satfinite.e4m3x2.f16x2 d, pair
template <typename Format, bool RELU, typename D>
SIM_INLINE void cvt_half_pair_to_narrow(D& d, In<uint32_t> pair) {
    cvt_to_narrow_pair<Format, RELU>(d, F16::to_float(static_cast<uint16_t>(pair.value >> 16)),
                                     F16::to_float(static_cast<uint16_t>(pair.value)));
}
// cvt.rn.f16x2.e4m3x2 d, pair: a pair of e4m3 to a pair of f16
template <typename Format, bool RELU, typename D>
SIM_INLINE void cvt_narrow_pair_to_half(D& d, In<uint16_t> pair) {
    float high = Format::decode(pair.value >> 8), low = Format::decode(pair.value & 0xff);
    cvt_to_pair<F16, RELU>(d, high, low);
}
template <typename D>
SIM_INLINE void cvt_rna_tf32(D& d, In<float> a) {
    uint32_t bits = bit_cast<uint32_t>(a.value);
    put(d, (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000u);
}

// --------------------------------------------------------------------------------------------------------- arithmetic

// The functions op_NAME implement the instruction NAME on one, two or three values of type T.
#define SIM_PTX_1(name, expression)               \
    template <typename T, typename D>             \
    SIM_INLINE void op_##name(D& d, In<T> in_a) { \
        T a = in_a;                               \
        put(d, static_cast<T>(expression));       \
    }
#define SIM_PTX_2(name, expression)                           \
    template <typename T, typename D>                         \
    SIM_INLINE void op_##name(D& d, In<T> in_a, In<T> in_b) { \
        T a = in_a, b = in_b;                                 \
        put(d, static_cast<T>(expression));                   \
    }
#define SIM_PTX_3(name, expression)                                       \
    template <typename T, typename D>                                     \
    SIM_INLINE void op_##name(D& d, In<T> in_a, In<T> in_b, In<T> in_c) { \
        T a = in_a, b = in_b, c = in_c;                                   \
        put(d, static_cast<T>(expression));                               \
    }
SIM_PTX_1(ex2, ::exp2f(a))
SIM_PTX_1(lg2, ::log2f(a))
SIM_PTX_1(rcp, 1 / a)
SIM_PTX_1(reciprocal_root, ::rsqrt(a))
SIM_PTX_1(sqrt, ::sqrt(a))
SIM_PTX_1(sin, ::sinf(a))
SIM_PTX_1(cos, ::cosf(a))
SIM_PTX_1(tanh, ::tanhf(a))
SIM_PTX_1(abs, a < 0 ? -a : a)
SIM_PTX_1(neg, -a)
SIM_PTX_1(not_bits, ~a)
SIM_PTX_1(brev, __brev(a))
SIM_PTX_2(add, a + b)
SIM_PTX_2(sub, a - b)
SIM_PTX_2(mul, a* b)
SIM_PTX_2(div, a / b)
SIM_PTX_2(rem, a % b)
SIM_PTX_2(min, ::min(a, b))
SIM_PTX_2(max, ::max(a, b))
SIM_PTX_2(and_bits, a& b)
SIM_PTX_2(or_bits, a | b)
SIM_PTX_2(xor_bits, a ^ b)
SIM_PTX_3(mad, a* b + c)
SIM_PTX_3(fma, ::fma(a, b, c))
SIM_PTX_1(popc, __popc(a))
SIM_PTX_1(clz, __clz(static_cast<int>(a)))
SIM_PTX_3(prmt, permute_bytes(a, b, c))
SIM_PTX_3(shf_l_wrap, __funnelshift_l(a, b, c))
SIM_PTX_3(shf_l_clamp, __funnelshift_lc(a, b, c))
SIM_PTX_3(shf_r_wrap, __funnelshift_r(a, b, c))
SIM_PTX_3(shf_r_clamp, __funnelshift_rc(a, b, c))
SIM_PTX_3(dp4a, __dp4a(a, b, c))
#undef SIM_PTX_1
#undef SIM_PTX_2
#undef SIM_PTX_3
SIM_INLINE void not_pred(bool& p, bool a) { p = !a; }
// bfind: the position of the most significant bit that differs from the sign; 0xffffffff if there is none. With
// .shiftamt: the shift that moves this bit to the top.
template <typename T, bool SHIFT_AMOUNT, typename D>
SIM_INLINE void bfind(D& d, In<T> a) {
    T value = a.value;
    if (value < 0) value = static_cast<T>(~value);
    constexpr uint32_t top = sizeof(T) * 8 - 1;
    uint32_t zeros = sizeof(T) == 8 ? __clzll(static_cast<long long>(value)) : __clz(static_cast<int>(value));
    put(d, zeros > top ? 0xffffffffu : SHIFT_AMOUNT ? zeros : top - zeros);
}
// A shift by the width or more gives 0. For shr of a signed type, each bit of the result is the sign bit.
template <typename T, typename D>
SIM_INLINE void shl(D& d, In<T> a, In<uint32_t> amount) {
    put(d, amount.value >= 8 * sizeof(T) ? T(0) : static_cast<T>(a.value << amount.value));
}
template <typename T, typename D>
SIM_INLINE void shr(D& d, In<T> a, In<uint32_t> amount) {
    uint32_t most = 8 * sizeof(T) - 1;
    T half = static_cast<T>(a.value >> (amount.value > most ? most : amount.value));
    put(d, amount.value > most && !std::is_signed<T>::value ? T(0) : half);
}
template <typename T, typename Wide, typename D>
SIM_INLINE void mul_wide(D& d, In<T> a, In<T> b) {
    put(d, static_cast<Wide>(static_cast<Wide>(a.value) * static_cast<Wide>(b.value)));
}
template <typename T, typename Wide, typename D>
SIM_INLINE void mad_wide(D& d, In<T> a, In<T> b, In<Wide> c) {
    put(d, static_cast<Wide>(static_cast<Wide>(a.value) * static_cast<Wide>(b.value) + c.value));
}
template <typename T, typename Wide, typename D>
SIM_INLINE void mul_hi(D& d, In<T> a, In<T> b) {
    put(d, static_cast<T>(static_cast<Wide>(a.value) * static_cast<Wide>(b.value) >> (8 * sizeof(T))));
}
template <typename T, typename D>
SIM_INLINE void bfe(D& d, In<T> a, In<uint32_t> position, In<uint32_t> length) {
    uint32_t start = position.value & 0xff, count = length.value & 0xff;
    if (count == 0 || start > 31) return put(d, count && std::is_signed<T>::value && a.value < 0 ? T(-1) : T(0));
    if (start + count > 32) count = 32 - start;
    uint32_t shifted = static_cast<uint32_t>(a.value) << (32 - start - count);
    put(d, static_cast<T>(static_cast<T>(shifted) >> (32 - count)));
}
template <typename D>
SIM_INLINE void bfi(D& d, In<uint32_t> a, In<uint32_t> b, In<uint32_t> position, In<uint32_t> length) {
    uint32_t start = position.value & 0xff, count = length.value & 0xff;
    uint64_t ones = count >= 32 ? 0xffffffffull : (1ull << count) - 1;
    uint32_t field = start > 31 ? 0 : static_cast<uint32_t>(ones << start);
    put(d, (b.value & ~field) | (start > 31 ? 0 : (a.value << start) & field));
}
// lop3: at each bit position, the bits of a, b and c form a number i from 0 to 7. The bit of the result is bit i of the
// table.
template <typename D>
SIM_INLINE void lop3(D& d, In<uint32_t> a, In<uint32_t> b, In<uint32_t> c, int table) {
    uint32_t result = 0;
    for (int i = 0; i < 8; ++i) {
        if (!(table >> i & 1)) continue;
        result |= (i & 4 ? a.value : ~a.value) & (i & 2 ? b.value : ~b.value) & (i & 1 ? c.value : ~c.value);
    }
    put(d, result);
}
// setp and selp. Ordered comparisons of floats (ne, lt, ...) are false if an operand is NaN. The unordered forms (neu,
// ltu, ...) are then true: each one negates an ordered comparison, as ltu negates ge.
enum class Compare { eq, ne, lt, le, gt, ge };
template <Compare RELATION, typename T>
SIM_INLINE bool compare(T a, T b) {
    if (RELATION == Compare::eq) return a == b;
    if (RELATION == Compare::ne) return a < b || a > b;
    if (RELATION == Compare::lt) return a < b;
    if (RELATION == Compare::le) return a <= b;
    if (RELATION == Compare::gt) return a > b;
    return a >= b;
}
template <Compare RELATION, bool NEGATED, typename T>
SIM_INLINE void setp(bool& p, In<T> a, In<T> b) {
    p = compare<RELATION, T>(a, b) != NEGATED;
}
template <typename T, typename D>
SIM_INLINE void selp(D& d, In<T> a, In<T> b, bool condition) {
    put(d, condition ? a.value : b.value);
}

// Arithmetic of f16x2 and bf16x2 in 32-bit registers, and of f16 and bf16 in 16-bit registers. A 16-bit operand becomes
// a pair whose upper half is zero, and the upper half of the result is dropped.
template <typename Pair>
SIM_INLINE Pair pair_of(uint32_t bits) {
    Pair pair;
    pair.x.bits = static_cast<uint16_t>(bits);
    pair.y.bits = static_cast<uint16_t>(bits >> 16);
    return pair;
}
template <typename Bits, typename Pair>
SIM_INLINE Bits bits_of(Pair pair) {
    return static_cast<Bits>(static_cast<uint32_t>(pair.y.bits) << 16 | pair.x.bits);
}
#define SIM_PTX_PAIR(name, function)                                           \
    template <typename Pair, typename Bits, typename D, typename... Operand>   \
    SIM_INLINE void pair_##name(D& d, Operand... operands) {                   \
        put(d, bits_of<Bits>(function(pair_of<Pair>(In<Bits>(operands))...))); \
    }
SIM_PTX_PAIR(ex2, h2exp2)
SIM_PTX_PAIR(tanh, h2tanh)
SIM_PTX_PAIR(neg, __hneg2)
SIM_PTX_PAIR(abs, __habs2)
SIM_PTX_PAIR(add, __hadd2)
SIM_PTX_PAIR(sub, __hsub2)
SIM_PTX_PAIR(mul, __hmul2)
SIM_PTX_PAIR(min, __hmin2)
SIM_PTX_PAIR(max, __hmax2)
SIM_PTX_PAIR(fma, __hfma2)
#undef SIM_PTX_PAIR

// ---------------------------------------------------------------------------- other instructions, special registers

SIM_INLINE void trap() { ::sim::trap(); }
SIM_INLINE void nanosleep(In<uint32_t> nanoseconds) { ::sim::nanosleep(nanoseconds); }

// Special registers.
SIM_INLINE uint32_t sreg_laneid() { return lane_index(); }
SIM_INLINE uint32_t sreg_warpid() { return warp_index(); }
SIM_INLINE uint32_t sreg_nwarpid() { return 32; }
SIM_INLINE uint32_t sreg_smid() { return 0; }  // blocks run one after another: all on one SM
SIM_INLINE uint32_t sreg_nsmid() { return 1; }
SIM_INLINE uint3 sreg_tid() { return thread_index(); }
SIM_INLINE uint3 sreg_ctaid() { return block_index(); }
SIM_INLINE dim3 sreg_ntid() { return block_dimensions(); }
SIM_INLINE dim3 sreg_nctaid() { return grid_dimensions(); }
SIM_INLINE uint32_t sreg_clock() { return static_cast<uint32_t>(clock_cycles()); }
SIM_INLINE uint64_t sreg_clock64() { return static_cast<uint64_t>(clock_cycles()); }
SIM_INLINE uint64_t sreg_globaltimer() { return global_timer(); }
SIM_INLINE uint32_t sreg_lanemask_eq() { return 1u << lane_index(); }
SIM_INLINE uint32_t sreg_lanemask_lt() { return (1u << lane_index()) - 1; }
SIM_INLINE uint32_t sreg_lanemask_le() { return (2u << lane_index()) - 1; }
SIM_INLINE uint32_t sreg_lanemask_gt() { return ~sreg_lanemask_le(); }
SIM_INLINE uint32_t sreg_lanemask_ge() { return ~sreg_lanemask_lt(); }
SIM_INLINE uint32_t sreg_dynamic_smem_size() { return static_cast<uint32_t>(dynamic_shared_bytes()); }

}  // namespace ptx
}  // namespace sim

#include "sim/ptx_async.h"
#include "sim/ptx_cluster.h"
#include "sim/ptx_tcgen05.h"
