// cub::DeviceReduce: Reduce, Sum, Min, Max, ArgMin and ArgMax.
#pragma once

#include <limits>

#include "cub/device/device_algorithm.h"
#include "thrust/reduce.h"

namespace cub {

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
    template <typename In, typename Out>
    static cudaError_t ArgMin(void* storage, size_t& bytes, In in, Out out, int n, cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, out, n, stream, [](auto a, auto b) { return a < b; });
    }
    template <typename In, typename Out>
    static cudaError_t ArgMax(void* storage, size_t& bytes, In in, Out out, int n, cudaStream_t stream = 0) {
        return first_of(storage, bytes, in, out, n, stream, [](auto a, auto b) { return b < a; });
    }

  private:
    // Stores the minimum with respect to the order `precedes`, as a pair of index and value. Of several equal elements,
    // stores the first.
    template <typename In, typename Out, typename Precedes>
    static cudaError_t first_of(void* storage, size_t& bytes, In in, Out out, int n, cudaStream_t stream,
                                Precedes precedes) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        auto from = ::thrust::detail::raw(in, 0);
        auto to = ::thrust::detail::raw(out, 0);
        return detail::run("cub::DeviceReduce::ArgMin or ArgMax", stream, [=] {
            if (n <= 0) return;
            int best = 0;
            for (int i = 1; i < n; ++i)
                if (precedes(from[i], from[best])) best = i;
            to[0].key = best;
            to[0].value = from[best];
        });
    }
};

}  // namespace cub
