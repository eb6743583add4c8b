// Execution of Thrust's algorithms: in host code, or as a kernel of the simulated device, whose checks see its
// accesses.
//
// On the device, an algorithm that treats each element independently is a kernel with one thread per element. Every
// other algorithm is a kernel of one thread, which runs the C++ library's algorithm. Its traffic says nothing about
// Thrust's own kernels.
#pragma once

#include <iostream>  // programs rely on it: Thrust includes it
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "sim/for_each_index.h"

namespace thrust {

// Thrown when CUDA reports an error.
struct system_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

SIM_INLINE void check(cudaError_t error, const char* what) {
    if (error) throw system_error(std::string(what) + ": " + cudaGetErrorString(error));
}

struct policy {};
struct host_policy : policy {};
struct device_policy : policy {
    cudaStream_t stream = nullptr;

    device_policy on(cudaStream_t other) const {
        device_policy result;
        result.stream = other;
        return result;
    }
};

// Says which memory holds an iterator's elements. Numbers, functions and iterators without memory are `nowhere`.
enum : int { nowhere = 0, on_host = 1, on_device = 2 };
template <typename T, typename = void>
struct system_of : std::integral_constant<int, nowhere> {};
template <typename T>
struct system_of<T, std::void_t<typename std::iterator_traits<T>::iterator_category>>
    : std::integral_constant<int, std::is_void_v<typename std::iterator_traits<T>::pointer> ? nowhere : on_host> {};
template <typename... Arguments>
constexpr int system_of_all = (nowhere | ... | system_of<Arguments>::value);
// The execution policy of a call that passes no policy. It is host_policy if all iterators that refer to memory refer
// to host memory, and device_policy otherwise.
template <typename... Arguments>
using policy_for = std::conditional_t<system_of_all<Arguments...> == on_host, host_policy, device_policy>;

// Base class of iterators: derives all operators from the members advance, difference and operator*.
template <typename Iterator, typename Value, typename Reference>
struct facade {
    using value_type = Value;
    using reference = Reference;
    using pointer = void;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::random_access_iterator_tag;

    SIM_INLINE Iterator& operator+=(std::ptrdiff_t n) {
        static_cast<Iterator*>(this)->advance(n);
        return static_cast<Iterator&>(*this);
    }
    SIM_INLINE Iterator& operator-=(std::ptrdiff_t n) { return *this += -n; }
    SIM_INLINE Iterator& operator++() { return *this += 1; }
    SIM_INLINE Iterator& operator--() { return *this += -1; }
    SIM_INLINE Iterator operator++(int) { return (*this += 1) - 1; }
    SIM_INLINE Iterator operator--(int) { return (*this -= 1) + 1; }
    SIM_INLINE Reference operator[](std::ptrdiff_t n) const { return *(static_cast<const Iterator&>(*this) + n); }
    friend SIM_INLINE Iterator operator+(Iterator a, std::ptrdiff_t n) { return a += n; }
    friend SIM_INLINE Iterator operator+(std::ptrdiff_t n, Iterator a) { return a += n; }
    friend SIM_INLINE Iterator operator-(Iterator a, std::ptrdiff_t n) { return a += -n; }
    friend SIM_INLINE std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) { return a.difference(b); }
#define SIM_COMPARE(op) \
    friend SIM_INLINE bool operator op(const Iterator& a, const Iterator& b) { return a.difference(b) op 0; }
    SIM_COMPARE(==) SIM_COMPARE(!=) SIM_COMPARE(<) SIM_COMPARE(>) SIM_COMPARE(<=) SIM_COMPARE(>=)
#undef SIM_COMPARE
};

// The iterator that kernels use in place of a pointer. With pointers, the C++ library would copy whole ranges by
// memmove, which the checks do not see.
template <typename T>
struct element_iterator : facade<element_iterator<T>, std::remove_cv_t<T>, T&> {
    T* place;

    SIM_INLINE explicit element_iterator(T* pointer = nullptr) : place(pointer) {}
    SIM_INLINE T& operator*() const { return *place; }
    SIM_INLINE void advance(std::ptrdiff_t n) { place += n; }
    SIM_INLINE std::ptrdiff_t difference(const element_iterator& other) const { return place - other.place; }
};

// Converts an argument of an algorithm to the form in which a kernel uses it: device pointers become element iterators.
template <typename T>
SIM_INLINE auto raw(const T& argument, int) -> decltype(argument.raw()) {
    return argument.raw();
}
template <typename T>
SIM_INLINE element_iterator<T> raw(T* const& pointer, int) {
    return element_iterator<T>(pointer);
}
template <typename T>
SIM_INLINE T raw(const T& argument, long) {
    return argument;
}
template <typename T>
using raw_of = decltype(raw(std::declval<const T&>(), 0));
template <typename Iterator>
using value_of = typename std::iterator_traits<Iterator>::value_type;

template <typename Policy>
SIM_INLINE bool launches(const Policy&) {
    return std::is_same_v<Policy, device_policy> && !::sim::on_device();
}

// Calls f(i) for each i below n, in any order.
template <typename Policy, typename F>
SIM_INLINE void for_each_index(const Policy& policy, const char* name, std::ptrdiff_t n, F f) {
    if constexpr (std::is_same_v<Policy, device_policy>) {
        if (launches(policy)) {
            ::sim::for_each_index(policy.stream, name, n, f);
            return check(cudaStreamSynchronize(policy.stream), name);
        }
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) f(i);
}

// Temporary memory of an algorithm: device memory if the policy launches a kernel, else host memory.
template <typename T>
struct temporary {
    T* data = nullptr;
    bool of_device;

    template <typename Policy>
    SIM_INLINE temporary(const Policy& policy, std::ptrdiff_t n) : of_device(launches(policy)) {
        size_t bytes = static_cast<size_t>(n) * sizeof(T);
        if (of_device)
            check(cudaMalloc(&data, bytes), "thrust");
        else
            data = static_cast<T*>(malloc(bytes));
    }
    temporary(const temporary&) = delete;
    SIM_INLINE ~temporary() {
        if (of_device)
            cudaFree(data);
        else
            free(data);
    }
};

// Returns the result of f(). With the device policy, a kernel with one thread computes it.
template <typename Policy, typename F>
SIM_INLINE auto result_of(const Policy& policy, const char* name, F f) {
    using T = decltype(f());
    if (!launches(policy)) return f();
    if constexpr (std::is_void_v<T>) {
        for_each_index(policy, name, 1, [=](std::ptrdiff_t) { f(); });
    } else {
        temporary<T> result(policy, 1);
        T* out = result.data;
        for_each_index(policy, name, 1, [=](std::ptrdiff_t) { new (out) T(f()); });
        alignas(T) char value[sizeof(T)];
        check(cudaMemcpy(value, out, sizeof(T), cudaMemcpyDeviceToHost), name);
        return T(*reinterpret_cast<T*>(value));
    }
}

}  // namespace detail

}  // namespace thrust

// Defines thrust::NAME for a function detail::NAME whose first argument is an execution policy. Callers may omit the
// policy: then policy_for chooses it from the arguments.
#define SIM_THRUST(name)                                                                                   \
    template <typename First, typename... Rest>                                                            \
    SIM_INLINE auto name(First first, Rest... rest) {                                                      \
        if constexpr (std::is_base_of_v<::thrust::detail::policy, First>)                                  \
            return ::thrust::detail::name(first, rest...);                                                 \
        else                                                                                               \
            return ::thrust::detail::name(::thrust::detail::policy_for<First, Rest...>(), first, rest...); \
    }
