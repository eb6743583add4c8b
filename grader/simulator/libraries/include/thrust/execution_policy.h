// thrust::host, thrust::device, thrust::seq and thrust::cuda::par.on(stream).
#pragma once

#include "thrust/detail/system.h"

namespace thrust {

inline constexpr detail::host_policy host, seq;
inline constexpr detail::device_policy device;
namespace cuda {
inline constexpr detail::device_policy par, par_nosync;
}

}  // namespace thrust
