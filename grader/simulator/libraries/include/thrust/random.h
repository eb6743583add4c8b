// Thrust's linear congruential engines, and its uniform and normal distributions. Each computes Thrust's numbers, except
// that the last bits of a normal number may differ: a GPU approximates erfcinv in its own way.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "thrust/pair.h"

namespace thrust {

namespace random {

// Each number is (a * x + c) modulo m, for the number x before it. The modulus fits 32 bits.
template <typename UIntType, UIntType a, UIntType c, UIntType m>
class linear_congruential_engine {
  public:
    using result_type = UIntType;
    static constexpr result_type multiplier = a, increment = c, modulus = m;
    static constexpr result_type min = c == 0 ? 1 : 0, max = m - 1, default_seed = 1;

    SIM_INLINE explicit linear_congruential_engine(result_type start = default_seed) { seed(start); }
    SIM_INLINE void seed(result_type start = default_seed) {
        static_assert(m > 0 && m <= UINT32_MAX, "a modulus above 32 bits, or of 0, is not simulated");
        static_assert(a > 0 && m % a < m / a, "Thrust computes this engine only if m % a < m / a (Schrage's method)");
        x_ = start % m;
        if (c % m == 0 && x_ == 0) x_ = 1;
    }
    SIM_INLINE result_type operator()() {
        x_ = static_cast<result_type>((std::uint64_t(a) * x_ + c) % m);
        return x_;
    }
    // Skips n numbers: squares the function x -> a * x + c for each bit of n.
    SIM_INLINE void discard(unsigned long long n) {
        std::uint64_t factor = a % m, addend = c % m, x = x_;
        for (; n > 0; n >>= 1) {
            if (n & 1) x = (factor * x + addend) % m;
            addend = (factor * addend + addend) % m;
            factor = factor * factor % m;
        }
        x_ = static_cast<result_type>(x);
    }
    friend SIM_INLINE bool operator==(const linear_congruential_engine& one, const linear_congruential_engine& other) {
        return one.x_ == other.x_;
    }
    friend SIM_INLINE bool operator!=(const linear_congruential_engine& one, const linear_congruential_engine& other) {
        return !(one == other);
    }

  private:
    result_type x_;
};
using minstd_rand0 = linear_congruential_engine<std::uint32_t, 16807, 0, 2147483647>;
using minstd_rand = linear_congruential_engine<std::uint32_t, 48271, 0, 2147483647>;
using default_random_engine = minstd_rand;

namespace detail {

// The two parameters of a distribution, and the functions that all distributions have.
template <typename Distribution, typename T>
class distribution {
  public:
    using result_type = T;
    using param_type = pair<T, T>;

    SIM_INLINE explicit distribution(const param_type& both) : param_(both) {}
    SIM_INLINE void reset() {}
    SIM_INLINE param_type param() const { return param_; }
    SIM_INLINE void param(const param_type& both) { param_ = both; }
    template <typename Engine>
    SIM_INLINE T operator()(Engine& engine) {
        return Distribution::draw(engine, param_);
    }
    template <typename Engine>
    SIM_INLINE T operator()(Engine& engine, const param_type& both) {
        return Distribution::draw(engine, both);
    }
    friend SIM_INLINE bool operator==(const Distribution& one, const Distribution& other) {
        return one.param() == other.param();
    }
    friend SIM_INLINE bool operator!=(const Distribution& one, const Distribution& other) {
        return one.param() != other.param();
    }

  private:
    param_type param_;
};
template <typename Distribution, typename T>
struct uniform : distribution<Distribution, T> {
    using distribution<Distribution, T>::distribution;
    SIM_INLINE T a() const { return this->param().first; }
    SIM_INLINE T b() const { return this->param().second; }
    SIM_INLINE T min() const { return a(); }
    SIM_INLINE T max() const { return b(); }
};

}  // namespace detail

// Numbers in [a, b).
template <typename T = double>
struct uniform_real_distribution : detail::uniform<uniform_real_distribution<T>, T> {
    using param_type = pair<T, T>;
    SIM_INLINE explicit uniform_real_distribution(T a = 0, T b = 1) : uniform_real_distribution(param_type(a, b)) {}
    SIM_INLINE explicit uniform_real_distribution(const param_type& both)
        : detail::uniform<uniform_real_distribution<T>, T>(both) {}
    template <typename Engine>
    static SIM_INLINE T draw(Engine& engine, const param_type& both) {
        T fraction = static_cast<T>(engine() - Engine::min) / (T(1) + static_cast<T>(Engine::max - Engine::min));
        return fraction * (both.second - both.first) + both.first;
    }
};

// Integers in [a, b]: a real number in [a, b + 1) without its fraction.
template <typename T = int>
struct uniform_int_distribution : detail::uniform<uniform_int_distribution<T>, T> {
    using param_type = pair<T, T>;
    SIM_INLINE explicit uniform_int_distribution(T a = 0, T b = std::numeric_limits<T>::max())
        : uniform_int_distribution(param_type(a, b)) {}
    SIM_INLINE explicit uniform_int_distribution(const param_type& both)
        : detail::uniform<uniform_int_distribution<T>, T>(both) {}
    template <typename Engine>
    static SIM_INLINE T draw(Engine& engine, const param_type& both) {
        uniform_real_distribution<double> real(static_cast<double>(both.first), static_cast<double>(both.second) + 1);
        return static_cast<T>(real(engine));
    }
};

// The inverse of the normal distribution function, applied to one number of the engine.
template <typename T = double>
struct normal_distribution : detail::distribution<normal_distribution<T>, T> {
    using param_type = pair<T, T>;
    SIM_INLINE explicit normal_distribution(T mean = 0, T stddev = 1) : normal_distribution(param_type(mean, stddev)) {}
    SIM_INLINE explicit normal_distribution(const param_type& both)
        : detail::distribution<normal_distribution<T>, T>(both) {}
    SIM_INLINE T mean() const { return this->param().first; }
    SIM_INLINE T stddev() const { return this->param().second; }
    SIM_INLINE T min() const { return std::numeric_limits<T>::lowest(); }
    SIM_INLINE T max() const { return std::numeric_limits<T>::max(); }
    template <typename Engine>
    static SIM_INLINE T draw(Engine& engine, const param_type& both) {
        constexpr auto range = Engine::max - Engine::min;
        constexpr T step = static_cast<T>(1.0 / static_cast<double>(range));
        auto u = engine() - Engine::min;
        bool upper = u > range / 2;
        T p = static_cast<T>(upper ? range - u : u) * step + step / 2;  // in (0, 0.5]
        T sign = static_cast<T>(upper ? 1.4142135623730951 : -1.4142135623730951);
        return both.first + both.second * sign * erfcinv(2 * p);
    }
};

}  // namespace random

using random::default_random_engine;
using random::linear_congruential_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;

}  // namespace thrust
