// Shifts with GPU semantics: a shift by the width or more gives 0, or the sign for a negative number shifted right. In
// C++ this is undefined, and a CPU takes the amount modulo the width. In device code of programs, the front end
// replaces `a << b` by `a << ::sim::gpu << b`. This form keeps operator precedence and the order of evaluation.
#pragma once

#include <type_traits>

namespace sim {

struct GpuShift {};
constexpr GpuShift gpu = {};

template <typename T>
constexpr bool is_shifted =
    std::is_integral<T>::value || (std::is_enum<T>::value && std::is_convertible<T, int>::value);

template <typename T>
struct Shifted {
    T value;
};

template <typename T, typename std::enable_if<is_shifted<T>, int>::type = 0>
[[gnu::always_inline]] constexpr auto operator<<(T value, GpuShift) -> Shifted<decltype(+value)> {
    return {+value};
}
template <typename T, typename std::enable_if<is_shifted<T>, int>::type = 0>
[[gnu::always_inline]] constexpr auto operator>>(T value, GpuShift) -> Shifted<decltype(+value)> {
    return {+value};
}
template <typename T, typename Amount>
[[gnu::always_inline]] constexpr T operator<<(Shifted<T> left, const Amount& amount) {
    using Bits = typename std::make_unsigned<T>::type;
    bool all = static_cast<unsigned long long>(amount) >= 8 * sizeof(T);
    return all ? T(0) : static_cast<T>(static_cast<Bits>(left.value) << amount);
}
template <typename T, typename Amount>
[[gnu::always_inline]] constexpr T operator>>(Shifted<T> left, const Amount& amount) {
    bool all = static_cast<unsigned long long>(amount) >= 8 * sizeof(T);
    return all ? (left.value < T(0) ? T(-1) : T(0)) : static_cast<T>(left.value >> amount);
}

// Types with shift operators of their own keep them.
template <typename T>
struct Passed {
    T& value;
};
template <typename T, typename std::enable_if<!is_shifted<typename std::decay<T>::type>, int>::type = 0>
[[gnu::always_inline]] constexpr Passed<typename std::remove_reference<T>::type> operator<<(T&& value, GpuShift) {
    return {value};
}
template <typename T, typename std::enable_if<!is_shifted<typename std::decay<T>::type>, int>::type = 0>
[[gnu::always_inline]] constexpr Passed<typename std::remove_reference<T>::type> operator>>(T&& value, GpuShift) {
    return {value};
}
template <typename T, typename Amount>
[[gnu::always_inline]] constexpr decltype(auto) operator<<(Passed<T> left, Amount&& amount) {
    return left.value << amount;
}
template <typename T, typename Amount>
[[gnu::always_inline]] constexpr decltype(auto) operator>>(Passed<T> left, Amount&& amount) {
    return left.value >> amount;
}

}  // namespace sim
