// cg::memcpy_async(group, shared, global, bytes): the members of a group copy together, asynchronously; cg::wait waits
// for the copies of all members.
#pragma once

#include "cooperative_groups.h"
#include "sim/device.h"
#include "sim/shared.h"

namespace cooperative_groups {

// The ways in which CUDA's overloads give the size of the copy.
template <size_t ALIGNMENT>
struct aligned_size_t {
    size_t bytes;
    constexpr aligned_size_t(size_t bytes_) : bytes(bytes_) {}
    constexpr operator size_t() const { return bytes; }
};

namespace detail {

template <size_t UNIT, typename Group>
SIM_INLINE void copy_units(const Group& group, char* to, const char* from, size_t bytes) {
    size_t step = UNIT * static_cast<size_t>(group.num_threads());
    for (size_t at = UNIT * static_cast<size_t>(group.thread_rank()); at < bytes; at += step) {
        if (UNIT >= 4 && ::sim::is_shared(to) && ::sim::is_global(from)) {
            ::sim::async_copy(to + at, from + at, UNIT, 0, ::sim::cache_operator(UNIT));
        } else {
            for (size_t i = 0; i < UNIT; ++i) to[at + i] = from[at + i];
        }
    }
}

}  // namespace detail

// Copies in the widest unit (16, 8 or 4 bytes) that divides both addresses and the size. Other copies are byte by byte
// and synchronous.
template <typename Group, typename T>
SIM_INLINE void memcpy_async(const Group& group, T* destination, const T* source, size_t bytes) {
    char* to = reinterpret_cast<char*>(destination);
    const char* from = reinterpret_cast<const char*>(source);
    uintptr_t bits = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
    if (bits % 16 == 0) {
        detail::copy_units<16>(group, to, from, bytes);
    } else if (bits % 8 == 0) {
        detail::copy_units<8>(group, to, from, bytes);
    } else if (bits % 4 == 0) {
        detail::copy_units<4>(group, to, from, bytes);
    } else {
        detail::copy_units<1>(group, to, from, bytes);
    }
    ::sim::async_copy_commit();
}

template <typename Group>
SIM_INLINE void wait(const Group& group, ::sim::Site site = SIM_CALLER) {
    ::sim::async_copy_wait(0);
    group.sync(site);
}
template <unsigned int STAGES, typename Group>
SIM_INLINE void wait_prior(const Group& group, ::sim::Site site = SIM_CALLER) {
    ::sim::async_copy_wait(STAGES);
    group.sync(site);
}

}  // namespace cooperative_groups
