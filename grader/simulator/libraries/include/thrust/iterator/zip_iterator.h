// An iterator over several ranges at once, whose elements are tuples.
#pragma once

#include "thrust/detail/system.h"
#include "thrust/tuple.h"

namespace thrust {

template <typename Tuple>
class zip_iterator;

template <typename... Bases>
class zip_iterator<tuple<Bases...>>
    : public detail::facade<zip_iterator<tuple<Bases...>>, tuple<detail::value_of<Bases>...>,
                            tuple<typename std::iterator_traits<Bases>::reference...>> {
    using References = tuple<typename std::iterator_traits<Bases>::reference...>;

  public:
    SIM_INLINE zip_iterator(const tuple<Bases...>& bases) : bases_(bases) {}
    SIM_INLINE References operator*() const {
        return std::apply([](const auto&... base) { return References(*base...); }, bases_);
    }
    SIM_INLINE const tuple<Bases...>& get_iterator_tuple() const { return bases_; }
    SIM_INLINE void advance(std::ptrdiff_t n) {
        std::apply([=](auto&... base) { ((base += n), ...); }, bases_);
    }
    SIM_INLINE std::ptrdiff_t difference(const zip_iterator& other) const {
        return std::get<0>(bases_) - std::get<0>(other.bases_);
    }
    SIM_INLINE auto raw() const {
        using Raw = tuple<detail::raw_of<Bases>...>;
        return std::apply([](const auto&... base) { return zip_iterator<Raw>(Raw(detail::raw(base, 0)...)); }, bases_);
    }

  private:
    tuple<Bases...> bases_;
};
namespace detail {
template <typename... Bases>
struct system_of<zip_iterator<tuple<Bases...>>> : std::integral_constant<int, system_of_all<Bases...>> {};
}  // namespace detail

template <typename... Bases>
SIM_INLINE zip_iterator<tuple<Bases...>> make_zip_iterator(const tuple<Bases...>& bases) {
    return bases;
}
template <typename... Bases>
SIM_INLINE zip_iterator<tuple<Bases...>> make_zip_iterator(const Bases&... bases) {
    return tuple<Bases...>(bases...);
}

}  // namespace thrust
