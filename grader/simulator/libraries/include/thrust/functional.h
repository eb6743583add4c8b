// Function objects: those of cuda::std, and a few of Thrust's own.
#pragma once

#include "cuda/functional"
#include "cuda/std/functional"
#include "sim/collective.h"

namespace thrust {

using ::cuda::maximum;
using ::cuda::minimum;
using namespace ::cuda::std;

#define SIM_FUNCTION(name, value)                                             \
    template <typename T = void>                                              \
    struct name {                                                             \
        SIM_INLINE constexpr T operator()(const T& x) const { return value; } \
    };                                                                        \
    template <>                                                               \
    struct name<void> {                                                       \
        template <typename T>                                                 \
        SIM_INLINE constexpr auto operator()(const T& x) const {              \
            return value;                                                     \
        }                                                                     \
    };
SIM_FUNCTION(negate, -x)
SIM_FUNCTION(logical_not, !x)
SIM_FUNCTION(identity, x)
SIM_FUNCTION(square, x* x)
#undef SIM_FUNCTION

}  // namespace thrust
