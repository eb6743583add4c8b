// cub::DeviceRadixSort: SortKeys and SortPairs, ascending and descending.
#pragma once

#include <string.h>

#include <type_traits>

#include "cub/device/device_algorithm.h"
#include "thrust/sort.h"

namespace cub {

namespace detail {

// Compares keys by the bits [begin_bit, end_bit). Each key is first mapped to an unsigned integer such that the
// integers have the same order as the numbers.
template <typename Key, bool Descending>
struct radix_order {
    static_assert(std::is_arithmetic_v<Key>, "cub::DeviceRadixSort sorts numbers");
    int begin_bit, end_bit;

    SIM_INLINE unsigned long long bits(Key key) const {
        constexpr int size = sizeof(Key) * 8;
        constexpr unsigned long long sign = 1ull << (size - 1);
        unsigned long long word = 0;
        memcpy(&word, &key, sizeof key);
        if constexpr (std::is_floating_point_v<Key>)
            word = word & sign ? ~word & (sign | (sign - 1)) : word | sign;
        else if constexpr (std::is_signed_v<Key>)
            word ^= sign;
        int count = end_bit - begin_bit;
        return count >= 64 ? word : word >> begin_bit & ((1ull << count) - 1);
    }
    SIM_INLINE bool operator()(Key a, Key b) const { return Descending ? bits(b) < bits(a) : bits(a) < bits(b); }
};

}  // namespace detail

struct DeviceRadixSort {
    template <typename Key>
    static cudaError_t SortKeys(void* storage, size_t& bytes, const Key* in, Key* out, std::ptrdiff_t n,
                                int begin_bit = 0, int end_bit = sizeof(Key) * 8, cudaStream_t stream = 0) {
        return sort_keys<false>(storage, bytes, in, out, n, begin_bit, end_bit, stream);
    }
    template <typename Key>
    static cudaError_t SortKeysDescending(void* storage, size_t& bytes, const Key* in, Key* out, std::ptrdiff_t n,
                                          int begin_bit = 0, int end_bit = sizeof(Key) * 8, cudaStream_t stream = 0) {
        return sort_keys<true>(storage, bytes, in, out, n, begin_bit, end_bit, stream);
    }
    template <typename Key, typename Value>
    static cudaError_t SortPairs(void* storage, size_t& bytes, const Key* in, Key* out, const Value* from, Value* to,
                                 std::ptrdiff_t n, int begin_bit = 0, int end_bit = sizeof(Key) * 8,
                                 cudaStream_t stream = 0) {
        return sort_pairs<false>(storage, bytes, in, out, from, to, n, begin_bit, end_bit, stream);
    }
    template <typename Key, typename Value>
    static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const Key* in, Key* out, const Value* from,
                                           Value* to, std::ptrdiff_t n, int begin_bit = 0,
                                           int end_bit = sizeof(Key) * 8, cudaStream_t stream = 0) {
        return sort_pairs<true>(storage, bytes, in, out, from, to, n, begin_bit, end_bit, stream);
    }

  private:
    template <bool Descending, typename Key>
    static cudaError_t sort_keys(void* storage, size_t& bytes, const Key* in, Key* out, std::ptrdiff_t n, int begin_bit,
                                 int end_bit, cudaStream_t stream) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        copy(in, out, n, stream);
        detail::radix_order<Key, Descending> order{begin_bit, end_bit};
        ::thrust::detail::sort(::thrust::cuda::par.on(stream), out, out + n, order);
        return cudaPeekAtLastError();
    }
    template <bool Descending, typename Key, typename Value>
    static cudaError_t sort_pairs(void* storage, size_t& bytes, const Key* in, Key* out, const Value* from, Value* to,
                                  std::ptrdiff_t n, int begin_bit, int end_bit, cudaStream_t stream) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        copy(in, out, n, stream);
        copy(from, to, n, stream);
        detail::radix_order<Key, Descending> order{begin_bit, end_bit};
        ::thrust::detail::sort_by_key(::thrust::cuda::par.on(stream), out, out + n, to, order);
        return cudaPeekAtLastError();
    }
    template <typename T>
    static void copy(const T* in, T* out, std::ptrdiff_t n, cudaStream_t stream) {
        cudaMemcpyAsync(out, in, static_cast<size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, stream);
    }
};

}  // namespace cub
