// cub::DeviceReduce: Reduce, Sum, Min, Max, ArgMin and ArgMax.
#pragma once

#include <limits>

#include "cub/device/device_algorithm.h"
#include "thrust/reduce.h"

namespace cub {

namespace detail {

SIM_INLINE auto smaller() {
    return [](auto a, auto b) { return a < b; };
}
SIM_INLINE auto larger() {
    return [](auto a, auto b) { return b < a; };
}
template <typename Value, typename Index>
SIM_INLINE auto separate(Value value, Index index) {
    auto to = ::thrust::detail::raw(value, 0);
    auto place = ::thrust::detail::raw(index, 0);
    return [=](int64_t best, auto found) {
        to[0] = found;
        place[0] = best;
    };
}
template <typename Out>
SIM_INLINE auto pair(Out out) {
    auto to = ::thrust::detail::raw(out, 0);
    return [=](int64_t best, auto found) {
        to[0].key = static_cast<int>(best);
        to[0].value = found;
    };
}

}  // namespace detail

struct DeviceReduce {
    template <typename In, typename Out, typename Op, typename T>
    static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n, Op op, T init,
                              cudaStream_t stream = 0) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        auto from = ::thrust::detail::raw(in, 0);
        auto to = ::thrust::detail::raw(out, 0);
        return detail::run("cub::DeviceReduce::Reduce", stream, [=] {
            auto element = [=](std::ptrdiff_t i) { return static_cast<T>(from[i]); };
            to[0] = n > 0 ? static_cast<T>(op(init, ::thrust::detail::fold<T>(element, 0, n, op))) : init;
        });
    }
    template <typename In, typename Out>
    static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n, cudaStream_t stream = 0) {
        return Reduce(storage, bytes, in, out, n, ::cuda::std::plus<>(), ::thrust::detail::value_of<In>(), stream);
    }
    template <typename In, typename Out>
    static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n, cudaStream_t stream = 0) {
        using T = ::thrust::detail::value_of<In>;
        auto smaller = [](T a, T b) { return b < a ? b : a; };
        return Reduce(storage, bytes, in, out, n, smaller, std::numeric_limits<T>::max(), stream);
    }
    template <typename In, typename Out>
    static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n, cudaStream_t stream = 0) {
        using T = ::thrust::detail::value_of<In>;
        auto larger = [](T a, T b) { return a < b ? b : a; };
        return Reduce(storage, bytes, in, out, n, larger, std::numeric_limits<T>::lowest(), stream);
    }
    // These store the value and the index in separate places, as CUB 2.8 and newer prefer.
    template <typename In, typename Value, typename Index>
    static cudaError_t ArgMin(void* storage, size_t& bytes, In in, Value value, Index index, int64_t n,
                              cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, n, stream, detail::smaller(), detail::separate(value, index));
    }
    template <typename In, typename Value, typename Index>
    static cudaError_t ArgMax(void* storage, size_t& bytes, In in, Value value, Index index, int64_t n,
                              cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, n, stream, detail::larger(), detail::separate(value, index));
    }
    // These store a KeyValuePair.
    template <typename In, typename Out>
    static cudaError_t ArgMin(void* storage, size_t& bytes, In in, Out out, int n, cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, n, stream, detail::smaller(), detail::pair(out));
    }
    template <typename In, typename Out>
    static cudaError_t ArgMax(void* storage, size_t& bytes, In in, Out out, int n, cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, n, stream, detail::larger(), detail::pair(out));
    }

  private:
    // Stores the index and the value of the minimum with respect to the order `precedes`, by store(index, value). Of
    // several equal elements, stores the first.
    template <typename In, typename Precedes, typename Store>
    static cudaError_t first_of(void* storage, size_t& bytes, In in, int64_t n, cudaStream_t stream, Precedes precedes,
                                Store store) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        auto from = ::thrust::detail::raw(in, 0);
        return detail::run("cub::DeviceReduce::ArgMin or ArgMax", stream, [=] {
            if (n <= 0) return;
            int64_t best = 0;
            for (int64_t i = 1; i < n; ++i)
                if (precedes(from[i], from[best])) best = i;
            store(best, from[best]);
        });
    }
};

}  // namespace cub
