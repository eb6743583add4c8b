// Iterators without memory: consecutive numbers, and a constant.
#pragma once

#include "thrust/detail/system.h"

namespace thrust {

template <typename T>
class counting_iterator : public detail::facade<counting_iterator<T>, T, T> {
  public:
    SIM_INLINE explicit counting_iterator(T value = T()) : value_(value) {}
    SIM_INLINE T operator*() const { return value_; }
    SIM_INLINE void advance(std::ptrdiff_t n) { value_ = static_cast<T>(value_ + static_cast<T>(n)); }
    SIM_INLINE std::ptrdiff_t difference(const counting_iterator& other) const {
        return static_cast<std::ptrdiff_t>(value_) - static_cast<std::ptrdiff_t>(other.value_);
    }

  private:
    T value_;
};
template <typename T>
SIM_INLINE counting_iterator<T> make_counting_iterator(T value) {
    return counting_iterator<T>(value);
}

template <typename T>
class constant_iterator : public detail::facade<constant_iterator<T>, T, T> {
  public:
    SIM_INLINE explicit constant_iterator(T value, std::ptrdiff_t place = 0) : value_(value), place_(place) {}
    SIM_INLINE T operator*() const { return value_; }
    SIM_INLINE void advance(std::ptrdiff_t n) { place_ += n; }
    SIM_INLINE std::ptrdiff_t difference(const constant_iterator& other) const { return place_ - other.place_; }

  private:
    T value_;
    std::ptrdiff_t place_;
};
template <typename T>
SIM_INLINE constant_iterator<T> make_constant_iterator(T value) {
    return constant_iterator<T>(value);
}

}  // namespace thrust
