// A kernel for library headers: it calls f(i) for each i below n, with one thread for each i.
#pragma once

#include "cuda_runtime.h"
#include "sim/collective.h"

namespace sim {

template <typename F>
void thread_for_each(F f, ptrdiff_t n) {
    ptrdiff_t i = static_cast<ptrdiff_t>(block_index().x) * block_dimensions().x + thread_index().x;
    if (i < n) f(i);
}

// Inlined, so that the launch has the line that calls the library: findings about the kernel name that line.
template <typename F>
SIM_INLINE void for_each_index(cudaStream_t stream, const char* name, ptrdiff_t n, F f) {
    if (n <= 0) return;
    unsigned threads = n < 256 ? static_cast<unsigned>(n) : 256;
    LaunchConfig config(static_cast<unsigned>((n + threads - 1) / threads), threads, 0, stream);
    auto call = [](const auto&... given) __attribute__((no_sanitize("thread"))) { thread_for_each(given...); };
    launch(config, name, call, f, n);
}

}  // namespace sim
