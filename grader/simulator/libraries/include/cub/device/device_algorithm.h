// What the algorithms of CUB over device memory share. As Thrust's, they run in kernels with one thread.
#pragma once

#include "thrust/execution_policy.h"
#include "thrust/functional.h"

namespace cub {

template <typename Key, typename Value>
struct KeyValuePair {
    using Key_ = Key;
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
