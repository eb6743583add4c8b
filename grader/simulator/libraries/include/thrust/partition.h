// partition and its relatives. A predicate is evaluated for each element, or for the element of a stencil at the same
// index. All keep the relative order, as Thrust's stable versions do.
#pragma once

#include "thrust/reduce.h"

namespace thrust {

namespace detail {

template <typename Policy, typename In, typename Stencil, typename OutTrue, typename OutFalse, typename Predicate>
SIM_INLINE pair<OutTrue, OutFalse> stable_partition_copy(const Policy& policy, In first, In last, Stencil stencil,
                                                         OutTrue out_true, OutFalse out_false, Predicate predicate) {
    auto from = raw(first, 0);
    auto test = raw(stencil, 0);
    auto to_true = raw(out_true, 0);
    auto to_false = raw(out_false, 0);
    std::ptrdiff_t n = last - first;
    std::ptrdiff_t count = result_of(policy, "thrust::partition_copy", [=] {
        std::ptrdiff_t found = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (predicate(test[i]))
                to_true[found++] = from[i];
            else
                to_false[i - found] = from[i];
        }
        return found;
    });
    return {out_true + count, out_false + (n - count)};
}
template <typename Policy, typename In, typename OutTrue, typename OutFalse, typename Predicate>
SIM_INLINE pair<OutTrue, OutFalse> stable_partition_copy(const Policy& policy, In first, In last, OutTrue out_true,
                                                         OutFalse out_false, Predicate predicate) {
    return detail::stable_partition_copy(policy, first, last, first, out_true, out_false, predicate);
}
template <typename Policy, typename InOut, typename Stencil, typename Predicate>
SIM_INLINE InOut stable_partition(const Policy& policy, InOut first, InOut last, Stencil stencil, Predicate predicate) {
    std::ptrdiff_t n = last - first;
    temporary<value_of<InOut>> others(policy, n + 1);
    auto* rest = others.data;
    auto at = raw(first, 0);
    auto test = raw(stencil, 0);
    return first + result_of(policy, "thrust::partition", [=] {
               std::ptrdiff_t found = 0;
               for (std::ptrdiff_t i = 0; i < n; ++i) {
                   if (predicate(test[i]))
                       at[found++] = at[i];
                   else
                       new (rest + i - found) value_of<InOut>(at[i]);
               }
               for (std::ptrdiff_t i = found; i < n; ++i) at[i] = rest[i - found];
               return found;
           });
}
template <typename Policy, typename InOut, typename Predicate>
SIM_INLINE InOut stable_partition(const Policy& policy, InOut first, InOut last, Predicate predicate) {
    return detail::stable_partition(policy, first, last, first, predicate);
}
template <typename... Arguments>
SIM_INLINE auto partition(const Arguments&... arguments) {
    return detail::stable_partition(arguments...);
}
template <typename... Arguments>
SIM_INLINE auto partition_copy(const Arguments&... arguments) {
    return detail::stable_partition_copy(arguments...);
}

}  // namespace detail

SIM_THRUST(partition)
SIM_THRUST(partition_copy)
SIM_THRUST(stable_partition)
SIM_THRUST(stable_partition_copy)

}  // namespace thrust
