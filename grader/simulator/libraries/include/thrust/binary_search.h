// Binary searches of one value, or of a range of values with one thread for each.
#pragma once

#include "thrust/reduce.h"

namespace thrust {

namespace detail {

// f(first, last, value, less) returns what the search finds, as an iterator or bool. The results of a range of values
// are positions or bools.
template <typename Policy, typename In, typename Values, typename Out, typename Less, typename F>
SIM_INLINE Out search_each(const Policy& policy, const char* name, In first, In last, Values values, Values values_end,
                           Out out, Less less, F f) {
    auto from = raw(first, 0);
    auto value = raw(values, 0);
    auto to = raw(out, 0);
    std::ptrdiff_t n = last - first;
    for_each_index(policy, name, values_end - values, [=](std::ptrdiff_t i) {
        auto found = f(from, from + n, value[i], less);
        if constexpr (std::is_same_v<decltype(found), bool>)
            to[i] = found;
        else
            to[i] = static_cast<value_of<Out>>(found - from);
    });
    return out + (values_end - values);
}

}  // namespace detail

#define SIM_SEARCH(name)                                                                                          \
    namespace detail {                                                                                            \
    template <typename Policy, typename In, typename T, typename Less = ::cuda::std::less<>>                      \
    SIM_INLINE auto name(const Policy& policy, In first, In last, const T& value, Less less = Less()) {           \
        return run_standard(                                                                                      \
            policy, "thrust::" #name, [](const auto&... raws) { return std::name(raws...); }, first, last, value, \
            less);                                                                                                \
    }                                                                                                             \
    template <typename Policy, typename In, typename Values, typename Out, typename Less = ::cuda::std::less<>,   \
              typename = value_of<Out>>                                                                           \
    SIM_INLINE Out name(const Policy& policy, In first, In last, Values values, Values values_end, Out out,       \
                        Less less = Less()) {                                                                     \
        return search_each(policy, "thrust::" #name, first, last, values, values_end, out, less,                  \
                           [](const auto&... all) { return std::name(all...); });                                 \
    }                                                                                                             \
    }                                                                                                             \
    SIM_THRUST(name)
SIM_SEARCH(lower_bound)
SIM_SEARCH(upper_bound)
SIM_SEARCH(binary_search)
#undef SIM_SEARCH

}  // namespace thrust
