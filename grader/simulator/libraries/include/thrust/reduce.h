// Algorithms over a whole range. On the device one thread runs them: the C++ library's algorithm of the same name, or a
// reduction.
#pragma once

#include <algorithm>
#include <numeric>

#include "thrust/device_ptr.h"
#include "thrust/functional.h"
#include "thrust/tuple.h"

namespace thrust {

namespace detail {

// Combines f(begin) ... f(end - 1) pairwise, with the rounding error of a GPU's tree.
template <typename T, typename F, typename Op>
T fold(const F& f, std::ptrdiff_t begin, std::ptrdiff_t end, const Op& op) {
    if (end - begin == 1) return f(begin);
    std::ptrdiff_t middle = begin + (end - begin) / 2;
    return op(fold<T>(f, begin, middle, op), fold<T>(f, middle, end, op));
}
template <typename T, typename Policy, typename F, typename Op>
SIM_INLINE T reduction(const Policy& policy, const char* name, std::ptrdiff_t n, T init, F f, Op op) {
    if (n <= 0) return init;
    return result_of(policy, name, [=] { return static_cast<T>(op(init, fold<T>(f, 0, n, op))); });
}
template <typename Policy, typename In, typename T = value_of<In>, typename Op = ::cuda::std::plus<>>
SIM_INLINE T reduce(const Policy& policy, In first, In last, T init = T(), Op op = Op()) {
    auto from = raw(first, 0);
    auto element = [=](std::ptrdiff_t i) { return static_cast<T>(from[i]); };
    return reduction(policy, "thrust::reduce", last - first, init, element, op);
}
template <typename Policy, typename In, typename F, typename T, typename Op>
SIM_INLINE T transform_reduce(const Policy& policy, In first, In last, F f, T init, Op op) {
    auto from = raw(first, 0);
    auto element = [=](std::ptrdiff_t i) { return static_cast<T>(f(from[i])); };
    return reduction(policy, "thrust::transform_reduce", last - first, init, element, op);
}
template <typename Policy, typename In, typename Other, typename T, typename Plus = ::cuda::std::plus<>,
          typename Times = ::cuda::std::multiplies<>>
SIM_INLINE T inner_product(const Policy& policy, In first, In last, Other other, T init, Plus plus = Plus(),
                           Times times = Times()) {
    auto from = raw(first, 0);
    auto second = raw(other, 0);
    auto element = [=](std::ptrdiff_t i) { return static_cast<T>(times(from[i], second[i])); };
    return reduction(policy, "thrust::inner_product", last - first, init, element, plus);
}

template <typename Policy, typename Keys, typename Values, typename OutKeys, typename OutValues,
          typename Same = ::cuda::std::equal_to<>, typename Op = ::cuda::std::plus<>>
SIM_INLINE pair<OutKeys, OutValues> reduce_by_key(const Policy& policy, Keys first, Keys last, Values values,
                                                  OutKeys out_keys, OutValues out_values, Same same = Same(),
                                                  Op op = Op()) {
    auto key = raw(first, 0);
    auto value = raw(values, 0);
    auto to_key = raw(out_keys, 0);
    auto to_value = raw(out_values, 0);
    std::ptrdiff_t n = last - first;
    std::ptrdiff_t runs = result_of(policy, "thrust::reduce_by_key", [=] {
        std::ptrdiff_t count = 0;
        for (std::ptrdiff_t i = 0; i < n; ++count) {
            to_key[count] = key[i];
            value_of<Values> sum = value[i];
            for (++i; i < n && same(key[i - 1], key[i]); ++i) sum = op(sum, value[i]);
            to_value[count] = sum;
        }
        return count;
    });
    return {out_keys + runs, out_values + runs};
}

// Converts a raw pointer in a result to the caller's type of iterator. The conversion adds the distance from the last
// argument that has this raw type. That argument is the output iterator, or an iterator of the same range as the
// result.
template <typename Result>
SIM_INLINE Result as_caller_iterator(const Result& result) {
    return result;
}
template <typename Result, typename First, typename... Rest>
SIM_INLINE auto as_caller_iterator(const Result& result, const First& last, const Rest&... before) {
    if constexpr (std::is_same_v<Result, raw_of<First>> && system_of<First>::value != nowhere)
        return last + (result - raw(last, 0));
    else
        return as_caller_iterator(result, before...);
}
template <typename Result, typename First, typename... Rest>
SIM_INLINE auto as_caller_iterator(const pair<Result, Result>& result, const First& last, const Rest&... before) {
    return make_pair(as_caller_iterator(result.first, last, before...),
                     as_caller_iterator(result.second, last, before...));
}
template <typename Result, size_t... Index, typename Arguments>
SIM_INLINE auto as_caller_iterator_reversed(const Result& result, const Arguments& arguments,
                                            std::index_sequence<Index...>) {
    return as_caller_iterator(result, std::get<sizeof...(Index) - 1 - Index>(arguments)...);
}

template <typename Policy, typename F, typename... Arguments>
SIM_INLINE auto run_standard(const Policy& policy, const char* name, F f, const Arguments&... arguments) {
    auto run = [=](auto... raws)
                   __attribute__((always_inline)) { return result_of(policy, name, [=] { return f(raws...); }); };
    if constexpr (std::is_void_v<decltype(f(raw(arguments, 0)...))>)
        return run(raw(arguments, 0)...);
    else
        return as_caller_iterator_reversed(run(raw(arguments, 0)...), std::tuple<Arguments...>(arguments...),
                                           std::index_sequence_for<Arguments...>());
}

template <typename Policy, typename In, typename Out, typename T = value_of<In>, typename Op = ::cuda::std::plus<>>
SIM_INLINE Out exclusive_scan(const Policy& policy, In first, In last, Out out, T init = T(), Op op = Op()) {
    auto from = raw(first, 0);
    auto to = raw(out, 0);
    std::ptrdiff_t n = last - first;
    result_of(policy, "thrust::exclusive_scan", [=] { std::exclusive_scan(from, from + n, to, init, op); });
    return out + n;
}

}  // namespace detail

#define SIM_STANDARD(name)                                                                                   \
    namespace detail {                                                                                       \
    template <typename Policy, typename... Arguments>                                                        \
    SIM_INLINE auto name(const Policy& policy, const Arguments&... arguments) {                              \
        return run_standard(                                                                                 \
            policy, "thrust::" #name, [](const auto&... raws) { return std::name(raws...); }, arguments...); \
    }                                                                                                        \
    }                                                                                                        \
    SIM_THRUST(name)
SIM_STANDARD(all_of)
SIM_STANDARD(any_of)
SIM_STANDARD(none_of)
SIM_STANDARD(count)
SIM_STANDARD(count_if)
SIM_STANDARD(find)
SIM_STANDARD(find_if)
SIM_STANDARD(equal)
SIM_STANDARD(copy_if)
SIM_STANDARD(unique)
SIM_STANDARD(unique_copy)
SIM_STANDARD(remove)
SIM_STANDARD(remove_if)
SIM_STANDARD(remove_copy_if)
SIM_STANDARD(reverse)
SIM_STANDARD(reverse_copy)
SIM_STANDARD(replace)
SIM_STANDARD(replace_if)
SIM_STANDARD(is_partitioned)
SIM_STANDARD(partition_point)
SIM_STANDARD(merge)
SIM_STANDARD(swap_ranges)
SIM_STANDARD(min_element)
SIM_STANDARD(max_element)
SIM_STANDARD(minmax_element)
SIM_STANDARD(is_sorted)
SIM_STANDARD(inclusive_scan)
SIM_STANDARD(adjacent_difference)
#undef SIM_STANDARD

SIM_THRUST(exclusive_scan)
SIM_THRUST(reduce)
SIM_THRUST(transform_reduce)
SIM_THRUST(inner_product)
SIM_THRUST(reduce_by_key)

}  // namespace thrust
