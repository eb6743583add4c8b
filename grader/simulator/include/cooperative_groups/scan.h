// cg::inclusive_scan and cg::exclusive_scan: each member gets the reduction over the members up to it.
#pragma once

#include "cooperative_groups/reduce.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Op>
SIM_INLINE auto inclusive_scan(const Group& group, T&& value, Op&& op, ::sim::Site site = SIM_CALLER) {
    auto sum = value;
    for (unsigned distance = 1; distance < group.size(); distance *= 2) {
        auto before = group.shfl_up(sum, distance, site);
        if (group.thread_rank() >= distance) sum = op(before, sum);
    }
    return sum;
}
template <typename Group, typename T>
SIM_INLINE auto inclusive_scan(const Group& group, T&& value, ::sim::Site site = SIM_CALLER) {
    return inclusive_scan(group, value, plus<>(), site);
}

// The first member gets T(), so the result is correct only for operations whose neutral element is zero.
template <typename Group, typename T, typename Op>
SIM_INLINE auto exclusive_scan(const Group& group, T&& value, Op&& op, ::sim::Site site = SIM_CALLER) {
    auto sum = inclusive_scan(group, value, op, site);
    auto before = group.shfl_up(sum, 1, site);
    if (group.thread_rank() == 0) before = decltype(sum)();
    return before;
}
template <typename Group, typename T>
SIM_INLINE auto exclusive_scan(const Group& group, T&& value, ::sim::Site site = SIM_CALLER) {
    return exclusive_scan(group, value, plus<>(), site);
}

}  // namespace cooperative_groups
