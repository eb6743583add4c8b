// copy and copy_n. A copy between host and device is a cudaMemcpy through a host buffer.
#pragma once

#include <algorithm>
#include <memory>

#include "thrust/transform.h"

namespace thrust {

namespace detail {

template <typename Policy, typename In, typename Out>
SIM_INLINE Out copy(const Policy& policy, In first, In last, Out out) {
    auto from = raw(first, 0);
    by_index(policy, "thrust::copy", out, last - first, [=](std::ptrdiff_t i) { return from[i]; });
    return out + (last - first);
}
template <typename In, typename Out>
SIM_INLINE Out copy_to_host(In first, In last, Out out) {
    using T = value_of<In>;
    std::ptrdiff_t n = last - first;
    std::unique_ptr<T[]> buffer(new T[static_cast<size_t>(n)]);
    if constexpr (std::is_same_v<raw_of<In>, element_iterator<T>> ||
                  std::is_same_v<raw_of<In>, element_iterator<const T>>) {
        check(cudaMemcpy(buffer.get(), raw(first, 0).place, static_cast<size_t>(n) * sizeof(T), cudaMemcpyDeviceToHost),
              "thrust::copy");
        return std::copy(buffer.get(), buffer.get() + n, out);
    } else {
        temporary<T> computed(device_policy(), n);
        device_ptr<T> begin(computed.data);
        detail::copy(device_policy(), first, last, begin);
        return copy_to_host(begin, begin + n, out);
    }
}
template <typename In, typename Out>
SIM_INLINE Out copy_to_device(In first, In last, Out out) {
    using T = value_of<Out>;
    std::ptrdiff_t n = std::distance(first, last);
    std::unique_ptr<T[]> buffer(new T[static_cast<size_t>(n)]);
    std::copy(first, last, buffer.get());
    check(cudaMemcpy(raw(out, 0).place, buffer.get(), static_cast<size_t>(n) * sizeof(T), cudaMemcpyHostToDevice),
          "thrust::copy");
    return out + n;
}
template <typename Policy, typename In, typename Out>
SIM_INLINE Out copy_n(const Policy& policy, In first, std::ptrdiff_t n, Out out) {
    return detail::copy(policy, first, first + n, out);
}

}  // namespace detail

template <typename In, typename Out>
SIM_INLINE Out copy(In first, In last, Out out) {
    constexpr int from = detail::system_of<In>::value, to = detail::system_of<Out>::value;
    if constexpr (from == detail::on_host && to == detail::on_device)
        return detail::copy_to_device(first, last, out);
    else if constexpr (from == detail::on_device && to != detail::on_device)
        return detail::copy_to_host(first, last, out);
    else if constexpr (to != detail::on_device)
        return std::copy(first, last, out);
    else
        return detail::copy(detail::device_policy(), first, last, out);
}
template <typename In, typename Out>
SIM_INLINE Out copy_n(In first, std::ptrdiff_t n, Out out) {
    return copy(first, std::next(first, n), out);
}
#define SIM_COPY_BY_POLICY(name, End)                                                 \
    template <typename Policy, typename In, typename Out,                             \
              typename = std::enable_if_t<std::is_base_of_v<detail::policy, Policy>>> \
    SIM_INLINE Out name(const Policy& policy, In first, End end, Out out) {           \
        return detail::name(policy, first, end, out);                                 \
    }
SIM_COPY_BY_POLICY(copy, In)
SIM_COPY_BY_POLICY(copy_n, std::ptrdiff_t)
#undef SIM_COPY_BY_POLICY

}  // namespace thrust
