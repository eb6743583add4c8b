// A pointer to device memory that host code can dereference: each read and write of an element is a copy.
#pragma once

#include "thrust/detail/system.h"

namespace thrust {

template <typename T>
class device_ptr;

// An element of device memory.
template <typename T>
class device_reference {
    using Value = std::remove_cv_t<T>;

  public:
    SIM_INLINE explicit device_reference(T* place) : place_(place) {}
    device_reference(const device_reference&) = default;

    SIM_INLINE operator Value() const {
        if (::sim::on_device()) return *place_;
        alignas(Value) char value[sizeof(Value)];
        detail::check(cudaMemcpy(value, place_, sizeof value, cudaMemcpyDeviceToHost), "thrust::device_reference");
        return *reinterpret_cast<Value*>(value);
    }
    SIM_INLINE const device_reference& operator=(const Value& value) const {
        if (::sim::on_device())
            *place_ = value;
        else
            detail::check(cudaMemcpy(place_, &value, sizeof value, cudaMemcpyHostToDevice), "thrust::device_reference");
        return *this;
    }
    SIM_INLINE const device_reference& operator=(const device_reference& other) const {
        return *this = static_cast<Value>(other);
    }
#define SIM_ASSIGN(op)                                                              \
    SIM_INLINE const device_reference& operator op## = (const Value& value) const { \
        return *this = static_cast<Value>(static_cast<Value>(*this) op value);      \
    }
    SIM_ASSIGN(+)
    SIM_ASSIGN(-)
    SIM_ASSIGN(*)
    SIM_ASSIGN(/)
#undef SIM_ASSIGN
    SIM_INLINE const device_reference& operator++() const { return *this += 1; }
    SIM_INLINE device_ptr<T> operator&() const { return device_ptr<T>(place_); }
    template <typename Stream>
    friend SIM_INLINE Stream& operator<<(Stream& stream, const device_reference& element) {
        stream << static_cast<Value>(element);
        return stream;
    }

  private:
    T* place_;
};

template <typename T>
class device_ptr : public detail::facade<device_ptr<T>, std::remove_cv_t<T>, device_reference<T>> {
  public:
    SIM_INLINE device_ptr(std::nullptr_t = nullptr) {}
    SIM_INLINE explicit device_ptr(T* pointer) : pointer_(pointer) {}
    template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
    SIM_INLINE device_ptr(const device_ptr<U>& other) : pointer_(other.get()) {}

    SIM_INLINE T* get() const { return pointer_; }
    SIM_INLINE explicit operator bool() const { return pointer_; }
    SIM_INLINE device_reference<T> operator*() const { return device_reference<T>(pointer_); }
    SIM_INLINE void advance(std::ptrdiff_t n) { pointer_ += n; }
    SIM_INLINE std::ptrdiff_t difference(const device_ptr& other) const { return pointer_ - other.pointer_; }
    SIM_INLINE detail::element_iterator<T> raw() const { return detail::element_iterator<T>(pointer_); }

  private:
    T* pointer_ = nullptr;
};
namespace detail {
template <typename T>
struct system_of<device_ptr<T>> : std::integral_constant<int, on_device> {};
}  // namespace detail

template <typename T>
SIM_INLINE device_ptr<T> device_pointer_cast(T* pointer) {
    return device_ptr<T>(pointer);
}
template <typename T>
SIM_INLINE T* raw_pointer_cast(const device_ptr<T>& pointer) {
    return pointer.get();
}
template <typename T>
SIM_INLINE T* raw_pointer_cast(T* pointer) {
    return pointer;
}
template <typename T>
SIM_INLINE device_ptr<T> device_malloc(size_t n) {
    T* pointer;
    detail::check(cudaMalloc(&pointer, n * sizeof(T)), "thrust::device_malloc");
    return device_ptr<T>(pointer);
}
template <typename T>
SIM_INLINE void device_free(device_ptr<T> pointer) {
    detail::check(cudaFree(pointer.get()), "thrust::device_free");
}

}  // namespace thrust
