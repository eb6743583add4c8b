// thrust::complex. Its functions of complex numbers are those of the C++ library.
#pragma once

#include <complex>
#include <iostream>
#include <type_traits>

#include "cuda_runtime.h"

namespace thrust {

template <typename T>
struct alignas(2 * sizeof(T)) complex {
    using value_type = T;

    complex() = default;
    SIM_INLINE complex(const T& real, const T& imag = T()) : x_(real), y_(imag) {}
    template <typename U>
    SIM_INLINE complex(const complex<U>& z) : x_(static_cast<T>(z.real())), y_(static_cast<T>(z.imag())) {}
    template <typename U>
    SIM_INLINE complex(const std::complex<U>& z) : x_(static_cast<T>(z.real())), y_(static_cast<T>(z.imag())) {}
    SIM_INLINE operator std::complex<T>() const { return {x_, y_}; }

    SIM_INLINE T real() const { return x_; }
    SIM_INLINE T imag() const { return y_; }
    SIM_INLINE void real(T value) { x_ = value; }
    SIM_INLINE void imag(T value) { y_ = value; }

    SIM_INLINE complex& operator+=(const complex& z) { return *this = *this + z; }
    SIM_INLINE complex& operator-=(const complex& z) { return *this = *this - z; }
    SIM_INLINE complex& operator*=(const complex& z) { return *this = *this * z; }
    SIM_INLINE complex& operator/=(const complex& z) { return *this = *this / z; }

  private:
    T x_ = T(), y_ = T();
};

namespace detail {

template <typename T>
using only_number = std::enable_if_t<std::is_arithmetic_v<T>>;

template <typename T>
SIM_INLINE complex<T> quotient(const complex<T>& a, const complex<T>& b) {
    T scale = 1 / (std::abs(b.real()) + std::abs(b.imag()));
    T ar = a.real() * scale, ai = a.imag() * scale, br = b.real() * scale, bi = b.imag() * scale;
    T norm = 1 / (br * br + bi * bi);
    return {(ar * br + ai * bi) * norm, (ai * br - ar * bi) * norm};
}

}  // namespace detail

template <typename T>
SIM_INLINE complex<T> operator+(const complex<T>& a) {
    return a;
}
template <typename T>
SIM_INLINE complex<T> operator-(const complex<T>& a) {
    return {-a.real(), -a.imag()};
}

// Two complex numbers, or one and a real number. The result has the wider of both types.
#define SIM_COMPLEX(op, Result, value)                                                                          \
    template <typename T, typename U, typename V = std::common_type_t<T, U>>                                    \
    SIM_INLINE Result operator op(const complex<T>& one, const complex<U>& other) {                             \
        complex<V> a(one), b(other);                                                                            \
        return value;                                                                                           \
    }                                                                                                           \
    template <typename T, typename U, typename V = std::common_type_t<T, U>, typename = detail::only_number<U>> \
    SIM_INLINE Result operator op(const complex<T>& one, const U& other) {                                      \
        return complex<V>(one) op complex<V>(static_cast<V>(other));                                            \
    }                                                                                                           \
    template <typename T, typename U, typename V = std::common_type_t<T, U>, typename = detail::only_number<T>> \
    SIM_INLINE Result operator op(const T& one, const complex<U>& other) {                                      \
        return complex<V>(static_cast<V>(one)) op complex<V>(other);                                            \
    }
SIM_COMPLEX(+, complex<V>, (complex<V>(a.real() + b.real(), a.imag() + b.imag())))
SIM_COMPLEX(-, complex<V>, (complex<V>(a.real() - b.real(), a.imag() - b.imag())))
SIM_COMPLEX(*, complex<V>,
            (complex<V>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real())))
SIM_COMPLEX(/, complex<V>, detail::quotient(a, b))
SIM_COMPLEX(==, bool, (a.real() == b.real() && a.imag() == b.imag()))
SIM_COMPLEX(!=, bool, (a.real() != b.real() || a.imag() != b.imag()))
#undef SIM_COMPLEX

namespace detail {
template <typename T>
SIM_INLINE T from_std(const T& value) {
    return value;
}
template <typename T>
SIM_INLINE complex<T> from_std(const std::complex<T>& z) {
    return z;
}
}  // namespace detail
#define SIM_OF_COMPLEX(name)                                    \
    template <typename T>                                       \
    SIM_INLINE auto name(const complex<T>& z) {                 \
        return detail::from_std(std::name(std::complex<T>(z))); \
    }
SIM_OF_COMPLEX(abs)
SIM_OF_COMPLEX(arg)
SIM_OF_COMPLEX(norm)
SIM_OF_COMPLEX(conj)
SIM_OF_COMPLEX(proj)
SIM_OF_COMPLEX(exp)
SIM_OF_COMPLEX(log)
SIM_OF_COMPLEX(log10)
SIM_OF_COMPLEX(sqrt)
SIM_OF_COMPLEX(sin)
SIM_OF_COMPLEX(cos)
SIM_OF_COMPLEX(tan)
SIM_OF_COMPLEX(asin)
SIM_OF_COMPLEX(acos)
SIM_OF_COMPLEX(atan)
SIM_OF_COMPLEX(sinh)
SIM_OF_COMPLEX(cosh)
SIM_OF_COMPLEX(tanh)
SIM_OF_COMPLEX(asinh)
SIM_OF_COMPLEX(acosh)
SIM_OF_COMPLEX(atanh)
#undef SIM_OF_COMPLEX

template <typename T>
SIM_INLINE complex<T> polar(const T& radius, const T& angle = T()) {
    return {radius * std::cos(angle), radius * std::sin(angle)};
}
template <typename T, typename U>
SIM_INLINE auto pow(const complex<T>& base, const complex<U>& exponent) {
    using V = std::common_type_t<T, U>;
    return complex<V>(std::pow(std::complex<V>(complex<V>(base)), std::complex<V>(complex<V>(exponent))));
}
template <typename T, typename U, typename = detail::only_number<U>>
SIM_INLINE auto pow(const complex<T>& base, const U& exponent) {
    return thrust::pow(base, complex<std::common_type_t<T, U>>(exponent));
}
template <typename T, typename U, typename = detail::only_number<T>>
SIM_INLINE auto pow(const T& base, const complex<U>& exponent) {
    return thrust::pow(complex<std::common_type_t<T, U>>(base), exponent);
}

template <typename T, typename Char, typename Traits>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, const complex<T>& z) {
    return out << std::complex<T>(z);
}
template <typename T, typename Char, typename Traits>
std::basic_istream<Char, Traits>& operator>>(std::basic_istream<Char, Traits>& in, complex<T>& z) {
    std::complex<T> value;
    in >> value;
    z = value;
    return in;
}

}  // namespace thrust
