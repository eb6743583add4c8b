// A vector in device memory, allocated with cudaMalloc, so that the checks know its bounds and its initialized
// elements.
#pragma once

#include <initializer_list>

#include "thrust/host_vector.h"
// Programs rely on the headers that NVIDIA's header includes.
#include "thrust/iterator/zip_iterator.h"
#include "thrust/reduce.h"
#include "thrust/transform.h"

namespace thrust {

template <typename T, typename Allocator = void>
class device_vector {
  public:
    using value_type = T;
    using reference = device_reference<T>;
    using const_reference = device_reference<const T>;
    using pointer = device_ptr<T>;
    using iterator = device_ptr<T>;
    using const_iterator = device_ptr<const T>;

    device_vector() = default;
    SIM_INLINE explicit device_vector(size_t n, const T& value = T()) { resize(n, value); }
    template <typename In, typename = detail::value_of<In>>
    SIM_INLINE device_vector(In first, In last) {
        assign(first, last);
    }
    SIM_INLINE device_vector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
    SIM_INLINE device_vector(const device_vector& other) { assign(other.begin(), other.end()); }
    SIM_INLINE device_vector(device_vector&& other) noexcept { swap(other); }
    template <typename Vector, typename = typename Vector::iterator>
    SIM_INLINE device_vector(const Vector& other) {
        assign(other.begin(), other.end());
    }
    SIM_INLINE ~device_vector() { cudaFree(data_.get()); }

    SIM_INLINE device_vector& operator=(const device_vector& other) {
        if (this != &other) assign(other.begin(), other.end());
        return *this;
    }
    SIM_INLINE device_vector& operator=(device_vector&& other) noexcept {
        swap(other);
        return *this;
    }
    template <typename Vector>
    SIM_INLINE device_vector& operator=(const Vector& other) {
        assign(other.begin(), other.end());
        return *this;
    }

    template <typename In, typename = detail::value_of<In>>
    SIM_INLINE void assign(In first, In last) {
        size_ = 0;
        hold(static_cast<size_t>(std::distance(first, last)));
        thrust::copy(first, last, begin());
    }
    SIM_INLINE void assign(size_t n, const T& value) {
        size_ = 0;
        resize(n, value);
    }
    SIM_INLINE void resize(size_t n, const T& value = T()) {
        size_t before = size_;
        hold(n);
        if (n > before)
            detail::fill_n(detail::device_policy(), begin() + difference(before), difference(n - before), value);
    }
    SIM_INLINE void reserve(size_t n) {
        size_t size = size_;
        if (n > capacity_) hold(n);
        size_ = size;
    }
    SIM_INLINE void push_back(const T& value) {
        if (size_ == capacity_) reserve(2 * size_ + 1);
        (*this)[size_++] = value;
    }
    SIM_INLINE void pop_back() { --size_; }
    SIM_INLINE void clear() { size_ = 0; }
    SIM_INLINE void shrink_to_fit() { device_vector(*this).swap(*this); }
    SIM_INLINE iterator erase(iterator first, iterator last) {
        device_vector rest(last, end());
        size_ -= static_cast<size_t>(last - first);
        thrust::copy(rest.begin(), rest.end(), first);
        return first;
    }
    SIM_INLINE void swap(device_vector& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    bool empty() const { return !size_; }
    SIM_INLINE iterator data() { return data_; }
    SIM_INLINE const_iterator data() const { return data_; }
    SIM_INLINE iterator begin() { return data_; }
    SIM_INLINE iterator end() { return data_ + difference(size_); }
    SIM_INLINE const_iterator begin() const { return data_; }
    SIM_INLINE const_iterator end() const { return data_ + difference(size_); }
    SIM_INLINE const_iterator cbegin() const { return begin(); }
    SIM_INLINE const_iterator cend() const { return end(); }
    SIM_INLINE reference operator[](size_t i) { return *(begin() + difference(i)); }
    SIM_INLINE const_reference operator[](size_t i) const { return *(begin() + difference(i)); }
    SIM_INLINE reference front() { return *begin(); }
    SIM_INLINE const_reference front() const { return *begin(); }
    SIM_INLINE reference back() { return *(end() - 1); }
    SIM_INLINE const_reference back() const { return *(end() - 1); }

  private:
    static std::ptrdiff_t difference(size_t n) { return static_cast<std::ptrdiff_t>(n); }
    // Sets the size to n and allocates no more than that, so that an overrun by one element is detected.
    SIM_INLINE void hold(size_t n) {
        if (n > capacity_) {
            T* memory;
            detail::check(cudaMalloc(&memory, n * sizeof(T)), "thrust::device_vector");
            if (size_) cudaMemcpy(memory, data_.get(), size_ * sizeof(T), cudaMemcpyDeviceToDevice);
            cudaFree(data_.get());
            data_ = device_ptr<T>(memory);
            capacity_ = n;
        }
        size_ = n;
    }

    device_ptr<T> data_;
    size_t size_ = 0, capacity_ = 0;
};

template <typename T, typename A, typename B>
SIM_INLINE bool operator==(const device_vector<T, A>& a, const device_vector<T, B>& b) {
    return host_vector<T>(a) == host_vector<T>(b);
}

}  // namespace thrust
