// An output iterator that ignores what is written.
#pragma once

#include "thrust/detail/system.h"

namespace thrust {

namespace detail {
struct ignored {
    template <typename T>
    SIM_INLINE ignored& operator=(const T&) {
        return *this;
    }
    ignored() = default;
    template <typename T>
    SIM_INLINE ignored(const T&) {}
};
}  // namespace detail

template <typename = void>
class discard_iterator : public detail::facade<discard_iterator<>, detail::ignored, detail::ignored> {
  public:
    SIM_INLINE explicit discard_iterator(std::ptrdiff_t place = 0) : place_(place) {}
    SIM_INLINE detail::ignored operator*() const { return {}; }
    SIM_INLINE void advance(std::ptrdiff_t n) { place_ += n; }
    SIM_INLINE std::ptrdiff_t difference(const discard_iterator& other) const { return place_ - other.place_; }

  private:
    std::ptrdiff_t place_;
};
SIM_INLINE discard_iterator<> make_discard_iterator(std::ptrdiff_t place = 0) { return discard_iterator<>(place); }

}  // namespace thrust
