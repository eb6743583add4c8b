// cg::reduce(group, value, op): every member gets the reduction over all members' values.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

// A reduction's operation on two values, like std::plus. Without a template argument, the call determines the types.
#define SIM_REDUCTION(name, expression)                                              \
    template <typename T = void>                                                     \
    struct name {                                                                    \
        SIM_INLINE T operator()(const T& a, const T& b) const { return expression; } \
    };                                                                               \
    template <>                                                                      \
    struct name<void> {                                                              \
        template <typename T>                                                        \
        SIM_INLINE T operator()(const T& a, const T& b) const {                      \
            return expression;                                                       \
        }                                                                            \
    };
SIM_REDUCTION(plus, a + b)
SIM_REDUCTION(less, b < a ? b : a)
SIM_REDUCTION(greater, a < b ? b : a)
SIM_REDUCTION(bit_and, a& b)
SIM_REDUCTION(bit_or, a | b)
SIM_REDUCTION(bit_xor, a ^ b)
#undef SIM_REDUCTION

namespace detail {

// A tree over ranks with the result in every member. In tiles of a power of two each step exchanges with the member at
// distance 1, 2, 4 ..., as a butterfly.
template <typename T, typename Op, unsigned int SIZE, typename Parent>
SIM_INLINE T reduce_lanes(const thread_block_tile<SIZE, Parent>& group, T value, Op op, ::sim::Site site) {
    for (unsigned distance = SIZE / 2; distance > 0; distance /= 2) {
        value = op(value, group.shfl_xor(value, distance, site));
    }
    return value;
}

// Reduces over any set of lanes: a tree that halves the ranks in each step; then the first member broadcasts the
// result.
template <typename T, typename Op>
SIM_INLINE T reduce_lanes(const coalesced_group& group, T value, Op op, ::sim::Site site) {
    unsigned rank = group.thread_rank();
    for (unsigned count = group.size(); count > 1;) {
        unsigned half = (count + 1) / 2;
        T other = group.shfl_down(value, half, site);
        if (rank + half < count) value = op(value, other);
        count = half;
    }
    return group.shfl(value, 0, site);
}

}  // namespace detail

template <typename Group, typename T, typename Op>
SIM_INLINE auto reduce(const Group& group, T&& value, Op&& op, ::sim::Site site = SIM_CALLER) {
    auto own = value;
    return detail::reduce_lanes(group, own, op, site);
}

}  // namespace cooperative_groups
