// sort and sort_by_key: a merge sort by one thread, always stable.
#pragma once

#include "thrust/functional.h"
#include "thrust/iterator/zip_iterator.h"

namespace thrust {

namespace detail {

// Sorts data[0 ... n) and returns the location of the result: `data` or `other`.
template <typename T, typename Less>
T* merge_sort(T* data, T* other, std::ptrdiff_t n, const Less& less) {
    for (std::ptrdiff_t run = 1; run < n; run *= 2) {
        for (std::ptrdiff_t begin = 0; begin < n; begin += 2 * run) {
            std::ptrdiff_t middle = begin + run < n ? begin + run : n, end = middle + run < n ? middle + run : n;
            for (std::ptrdiff_t i = begin, j = middle, k = begin; k < end; ++k)
                other[k] = j == end || (i < middle && !less(data[j], data[i])) ? data[i++] : data[j++];
        }
        std::swap(data, other);
    }
    return data;
}

template <typename Policy, typename InOut, typename Less = ::cuda::std::less<>>
SIM_INLINE void sort(const Policy& policy, InOut first, InOut last, Less less = Less()) {
    std::ptrdiff_t n = last - first;
    temporary<value_of<InOut>> one(policy, n + 1), two(policy, n + 1);
    auto *data = one.data, *other = two.data;
    auto at = raw(first, 0);
    result_of(policy, "thrust::sort", [=] {
        for (std::ptrdiff_t i = 0; i < n; ++i) data[i] = at[i];
        const auto* sorted = merge_sort(data, other, n, less);
        for (std::ptrdiff_t i = 0; i < n; ++i) at[i] = sorted[i];
    });
}
template <typename Policy, typename Keys, typename Values, typename Less = ::cuda::std::less<>>
SIM_INLINE void sort_by_key(const Policy& policy, Keys first, Keys last, Values values, Less less = Less()) {
    auto both = make_zip_iterator(first, values);
    detail::sort(policy, both, both + (last - first),
                 [=](const auto& a, const auto& b) { return less(get<0>(a), get<0>(b)); });
}
template <typename... Arguments>
SIM_INLINE void stable_sort(const Arguments&... arguments) {
    detail::sort(arguments...);
}
template <typename... Arguments>
SIM_INLINE void stable_sort_by_key(const Arguments&... arguments) {
    detail::sort_by_key(arguments...);
}

}  // namespace detail

SIM_THRUST(sort)
SIM_THRUST(stable_sort)
SIM_THRUST(sort_by_key)
SIM_THRUST(stable_sort_by_key)

}  // namespace thrust
