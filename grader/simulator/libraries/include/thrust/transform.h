// Algorithms that treat each element independently, with one thread per element on the device.
#pragma once

#include "thrust/device_ptr.h"

namespace thrust {

namespace detail {

template <typename Policy, typename In, typename F>
SIM_INLINE In for_each(const Policy& policy, In first, In last, F f) {
    auto from = raw(first, 0);
    for_each_index(policy, "thrust::for_each", last - first, [=](std::ptrdiff_t i) mutable { f(from[i]); });
    return last;
}
template <typename Policy, typename In, typename F>
SIM_INLINE In for_each_n(const Policy& policy, In first, std::ptrdiff_t n, F f) {
    return detail::for_each(policy, first, first + n, f);
}

template <typename Policy, typename Out, typename F>
SIM_INLINE void by_index(const Policy& policy, const char* name, Out out, std::ptrdiff_t n, F f) {
    auto to = raw(out, 0);
    for_each_index(policy, name, n, [=](std::ptrdiff_t i) mutable { to[i] = static_cast<value_of<Out>>(f(i)); });
}
template <typename Policy, typename In, typename Out, typename F>
SIM_INLINE Out transform(const Policy& policy, In first, In last, Out out, F f) {
    auto from = raw(first, 0);
    by_index(policy, "thrust::transform", out, last - first, [=](std::ptrdiff_t i) mutable { return f(from[i]); });
    return out + (last - first);
}
template <typename Policy, typename In, typename Other, typename Out, typename F>
SIM_INLINE Out transform(const Policy& policy, In first, In last, Other other, Out out, F f) {
    auto from = raw(first, 0);
    auto second = raw(other, 0);
    by_index(policy, "thrust::transform", out, last - first,
             [=](std::ptrdiff_t i) mutable { return f(from[i], second[i]); });
    return out + (last - first);
}
template <typename Policy, typename Out, typename F>
SIM_INLINE void tabulate(const Policy& policy, Out first, Out last, F f) {
    by_index(policy, "thrust::tabulate", first, last - first, f);
}
template <typename Policy, typename Out, typename F>
SIM_INLINE void generate(const Policy& policy, Out first, Out last, F f) {
    by_index(policy, "thrust::generate", first, last - first, [=](std::ptrdiff_t) mutable { return f(); });
}
template <typename Policy, typename Out, typename T>
SIM_INLINE Out fill_n(const Policy& policy, Out first, std::ptrdiff_t n, T value) {
    by_index(policy, "thrust::fill", first, n, [=](std::ptrdiff_t) { return value; });
    return first + n;
}
template <typename Policy, typename Out, typename T>
SIM_INLINE void fill(const Policy& policy, Out first, Out last, T value) {
    detail::fill_n(policy, first, last - first, value);
}
template <typename Policy, typename Out, typename T = value_of<Out>>
SIM_INLINE void sequence(const Policy& policy, Out first, Out last, T init = T(0), T step = T(1)) {
    by_index(policy, "thrust::sequence", first, last - first,
             [=](std::ptrdiff_t i) { return init + static_cast<T>(i) * step; });
}
template <typename Policy, typename Map, typename In, typename Out>
SIM_INLINE Out gather(const Policy& policy, Map first, Map last, In in, Out out) {
    auto map = raw(first, 0);
    auto from = raw(in, 0);
    by_index(policy, "thrust::gather", out, last - first, [=](std::ptrdiff_t i) { return from[map[i]]; });
    return out + (last - first);
}
template <typename Policy, typename In, typename Map, typename Out>
SIM_INLINE void scatter(const Policy& policy, In first, In last, Map map, Out out) {
    auto from = raw(first, 0);
    auto where = raw(map, 0);
    auto to = raw(out, 0);
    for_each_index(policy, "thrust::scatter", last - first, [=](std::ptrdiff_t i) { to[where[i]] = from[i]; });
}

}  // namespace detail

SIM_THRUST(for_each)
SIM_THRUST(for_each_n)
SIM_THRUST(transform)
SIM_THRUST(tabulate)
SIM_THRUST(generate)
SIM_THRUST(fill)
SIM_THRUST(fill_n)
SIM_THRUST(sequence)
SIM_THRUST(gather)
SIM_THRUST(scatter)

}  // namespace thrust
