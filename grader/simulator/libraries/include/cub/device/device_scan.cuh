// cub::DeviceScan: InclusiveSum, ExclusiveSum, InclusiveScan and ExclusiveScan.
#pragma once

#include "cub/device/device_algorithm.h"

namespace cub {

struct DeviceScan {
    template <typename In, typename Out, typename Op>
    static cudaError_t InclusiveScan(void* storage, size_t& bytes, In in, Out out, Op op, std::ptrdiff_t n,
                                     cudaStream_t stream = 0) {
        using T = ::thrust::detail::value_of<In>;
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        auto from = ::thrust::detail::raw(in, 0);
        auto to = ::thrust::detail::raw(out, 0);
        return detail::run("cub::DeviceScan::InclusiveScan", stream, [=] {
            if (n <= 0) return;
            T sum = from[0];
            to[0] = sum;
            for (std::ptrdiff_t i = 1; i < n; ++i) to[i] = sum = op(sum, from[i]);
        });
    }
    template <typename In, typename Out, typename Op, typename T>
    static cudaError_t ExclusiveScan(void* storage, size_t& bytes, In in, Out out, Op op, T init, std::ptrdiff_t n,
                                     cudaStream_t stream = 0) {
        if (detail::asks_for_size(storage, bytes)) return cudaSuccess;
        auto from = ::thrust::detail::raw(in, 0);
        auto to = ::thrust::detail::raw(out, 0);
        return detail::run("cub::DeviceScan::ExclusiveScan", stream, [=] {
            T sum = init;
            for (std::ptrdiff_t i = 0; i < n; ++i) {
                T next = op(sum, from[i]);  // `in` and `out` may be the same memory
                to[i] = sum;
                sum = next;
            }
        });
    }
    template <typename In, typename Out>
    static cudaError_t InclusiveSum(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n,
                                    cudaStream_t stream = 0) {
        return InclusiveScan(storage, bytes, in, out, ::cuda::std::plus<>(), n, stream);
    }
    template <typename In, typename Out>
    static cudaError_t ExclusiveSum(void* storage, size_t& bytes, In in, Out out, std::ptrdiff_t n,
                                    cudaStream_t stream = 0) {
        using T = ::thrust::detail::value_of<In>;
        return ExclusiveScan(storage, bytes, in, out, ::cuda::std::plus<>(), T(), n, stream);
    }
};

}  // namespace cub
