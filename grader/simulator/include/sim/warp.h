// Warp intrinsics: shuffles, votes, matches, reductions, __syncwarp and __activemask.
//
// Every lane in the mask must arrive before any of them continues, as on GPUs since Volta. The functions in namespace
// sim are the primitives; kernels call the CUDA names below them. An intrinsic is a macro so that it carries its place
// in the source.
#pragma once

#include <stdint.h>
#include <string.h>
#include <type_traits>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

enum class Shuffle : int { index, up, down, exclusive_or };
enum class Vote : int { ballot, all, any, uniform };
enum class Reduce : int { add, min, max, bit_and, bit_or, bit_xor };

void warp_barrier(Site site, unsigned mask);
uint64_t warp_shuffle(Site site, Shuffle kind, unsigned mask, uint64_t value, unsigned argument, unsigned width);
unsigned warp_vote(Site site, Vote kind, unsigned mask, bool predicate);
unsigned warp_match_any(Site site, unsigned mask, uint64_t value);
unsigned warp_match_all(Site site, unsigned mask, uint64_t value, bool* all_equal);
uint32_t warp_reduce(Site site, Reduce kind, unsigned mask, uint32_t value, bool is_signed);
[[gnu::noinline]] unsigned active_mask();

// A shuffle of any trivially copyable type of up to 8 bytes.
template <typename T>
inline T shuffle(Site site, Shuffle kind, unsigned mask, T value, unsigned argument, int width = 32) {
    static_assert(std::is_trivially_destructible<T>::value, "only plain values can be shuffled");
    static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
    bits = warp_shuffle(site, kind, mask, bits, argument, static_cast<unsigned>(width));
    T result = value;
    memcpy(static_cast<void*>(&result), &bits, sizeof(T));
    return result;
}

template <typename T>
inline uint64_t match_bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "__match_*_sync compares 4- or 8-byte values");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
inline unsigned match_any(Site site, unsigned mask, T value) {
    return warp_match_any(site, mask, match_bits(value));
}

template <typename T>
inline unsigned match_all(Site site, unsigned mask, T value, int* predicate) {
    bool all_equal = false;
    unsigned result = warp_match_all(site, mask, match_bits(value), &all_equal);
    *predicate = all_equal;
    return result;
}

template <typename T>
inline T reduce(Site site, Reduce kind, unsigned mask, T value) {
    static_assert(std::is_same<T, int>::value || std::is_same<T, unsigned>::value,
                  "__reduce_*_sync takes int or unsigned");
    return static_cast<T>(warp_reduce(site, kind, mask, static_cast<uint32_t>(value), std::is_signed<T>::value));
}

inline void syncwarp(Site site, unsigned mask = 0xffffffffu) { warp_barrier(site, mask); }

template <Shuffle Kind, typename T>
inline T shuffle_sync(Site site, unsigned mask, T value, unsigned argument, int width = 32) {
    return shuffle(site, Kind, mask, value, argument, width);
}

inline unsigned ballot(Site site, unsigned mask, int predicate) {
    return warp_vote(site, Vote::ballot, mask, predicate != 0);
}

template <Vote Kind>
inline int vote(Site site, unsigned mask, int predicate) {
    return static_cast<int>(warp_vote(site, Kind, mask, predicate != 0));
}

template <Reduce Kind, typename T>
inline T reduce_sync(Site site, unsigned mask, T value) {
    return reduce(site, Kind, mask, value);
}

}  // namespace sim
#pragma GCC visibility pop

#define __syncwarp(...) ::sim::syncwarp(SIM_HERE __VA_OPT__(, ) __VA_ARGS__)
#define __activemask() ::sim::active_mask()

#define __shfl_sync(...) ::sim::shuffle_sync<::sim::Shuffle::index>(SIM_HERE, __VA_ARGS__)
#define __shfl_up_sync(...) ::sim::shuffle_sync<::sim::Shuffle::up>(SIM_HERE, __VA_ARGS__)
#define __shfl_down_sync(...) ::sim::shuffle_sync<::sim::Shuffle::down>(SIM_HERE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::sim::shuffle_sync<::sim::Shuffle::exclusive_or>(SIM_HERE, __VA_ARGS__)

#define __ballot_sync(...) ::sim::ballot(SIM_HERE, __VA_ARGS__)
#define __all_sync(...) ::sim::vote<::sim::Vote::all>(SIM_HERE, __VA_ARGS__)
#define __any_sync(...) ::sim::vote<::sim::Vote::any>(SIM_HERE, __VA_ARGS__)
#define __uni_sync(...) ::sim::vote<::sim::Vote::uniform>(SIM_HERE, __VA_ARGS__)

#define __match_any_sync(...) ::sim::match_any(SIM_HERE, __VA_ARGS__)
#define __match_all_sync(...) ::sim::match_all(SIM_HERE, __VA_ARGS__)

#define __reduce_add_sync(...) ::sim::reduce_sync<::sim::Reduce::add>(SIM_HERE, __VA_ARGS__)
#define __reduce_min_sync(...) ::sim::reduce_sync<::sim::Reduce::min>(SIM_HERE, __VA_ARGS__)
#define __reduce_max_sync(...) ::sim::reduce_sync<::sim::Reduce::max>(SIM_HERE, __VA_ARGS__)
#define __reduce_and_sync(...) ::sim::reduce_sync<::sim::Reduce::bit_and>(SIM_HERE, __VA_ARGS__)
#define __reduce_or_sync(...) ::sim::reduce_sync<::sim::Reduce::bit_or>(SIM_HERE, __VA_ARGS__)
#define __reduce_xor_sync(...) ::sim::reduce_sync<::sim::Reduce::bit_xor>(SIM_HERE, __VA_ARGS__)
