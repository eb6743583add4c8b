// A std::vector that can also be constructed from a device_vector.
#pragma once

#include <vector>

#include "thrust/copy.h"

namespace thrust {

template <typename T, typename Allocator>
class device_vector;

template <typename T, typename Allocator = std::allocator<T>>
class host_vector : public std::vector<T, Allocator> {
    static_assert(!std::is_same_v<T, bool>, "host_vector<bool> is not simulated: take char");

  public:
    using std::vector<T, Allocator>::vector;
    host_vector() = default;
    host_vector(const std::vector<T>& other) : host_vector(other.begin(), other.end()) {}
    template <typename U, typename A>
    SIM_INLINE host_vector(const device_vector<U, A>& other) : host_vector(other.size()) {
        thrust::copy(other.begin(), other.end(), this->begin());
    }
    template <typename U, typename A>
    SIM_INLINE host_vector& operator=(const device_vector<U, A>& other) {
        return *this = host_vector(other);
    }
};

}  // namespace thrust
