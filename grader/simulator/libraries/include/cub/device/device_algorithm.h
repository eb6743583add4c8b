// Shared parts of CUB's algorithms over device memory. Like Thrust's algorithms here, they run in kernels with one thread.
#pragma once

#include "thrust/execution_policy.h"
#include "thrust/functional.h"

namespace cub {

template <typename Key_, typename Value_>
struct KeyValuePair {
    using Key = Key_;
    using Value = Value_;
    Key key;
    Value value;
};

namespace detail {

// A call without temporary storage only asks for its size.
SIM_INLINE bool asks_for_size(void* storage, size_t& bytes) {
    if (storage) return false;
    bytes = 1;
    return true;
}

// Runs f() in a kernel with one thread.
template <typename F>
SIM_INLINE cudaError_t run(const char* name, cudaStream_t stream, F f) {
    ::thrust::detail::result_of(::thrust::cuda::par.on(stream), name, f);
    return cudaPeekAtLastError();
}

}  // namespace detail

}  // namespace cub
