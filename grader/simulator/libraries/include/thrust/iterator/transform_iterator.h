// An iterator whose elements are a function of the elements of another range.
#pragma once

#include "thrust/detail/system.h"

namespace thrust {

namespace detail {
template <typename F, typename Base>
using result_on = std::decay_t<decltype(std::declval<const F&>()(*std::declval<const Base&>()))>;
}

template <typename F, typename Base>
class transform_iterator
    : public detail::facade<transform_iterator<F, Base>, detail::result_on<F, Base>, detail::result_on<F, Base>> {
  public:
    SIM_INLINE transform_iterator(Base base, F f = F()) : base_(base), f_(f) {}
    SIM_INLINE detail::result_on<F, Base> operator*() const { return f_(*base_); }
    SIM_INLINE void advance(std::ptrdiff_t n) { base_ += n; }
    SIM_INLINE std::ptrdiff_t difference(const transform_iterator& other) const { return base_ - other.base_; }
    SIM_INLINE auto raw() const { return transform_iterator<F, detail::raw_of<Base>>(detail::raw(base_, 0), f_); }

  private:
    Base base_;
    F f_;
};
namespace detail {
template <typename F, typename Base>
struct system_of<transform_iterator<F, Base>> : system_of<Base> {};
}  // namespace detail

template <typename F, typename Base>
SIM_INLINE transform_iterator<F, Base> make_transform_iterator(Base base, F f) {
    return transform_iterator<F, Base>(base, f);
}

}  // namespace thrust
