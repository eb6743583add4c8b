// cub::WarpReduce: the lanes of a logical warp reduce their values; lane 0 gets the result.
#pragma once

#include "cuda/functional"
#include "sim/collective.h"

namespace cub {

// CUB's name for an empty TempStorage: shuffles need no shared memory.
struct NullType {};

template <typename T, int LOGICAL_WARP_THREADS = 32>
class WarpReduce {
    static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32 &&
                      (LOGICAL_WARP_THREADS & (LOGICAL_WARP_THREADS - 1)) == 0,
                  "logical warps of a power of two up to 32 lanes are simulated");

  public:
    struct TempStorage : NullType {};

    SIM_INLINE explicit WarpReduce(TempStorage&) {}

    // The functions reduce the values of the first `valid_items` lanes.
    SIM_INLINE T Sum(T input, int valid_items = LOGICAL_WARP_THREADS, ::sim::Site site = SIM_CALLER) {
        return Reduce(input, ::cuda::std::plus<>(), valid_items, site);
    }
    SIM_INLINE T Max(T input, int valid_items = LOGICAL_WARP_THREADS, ::sim::Site site = SIM_CALLER) {
        return Reduce(input, ::cuda::maximum<>(), valid_items, site);
    }
    SIM_INLINE T Min(T input, int valid_items = LOGICAL_WARP_THREADS, ::sim::Site site = SIM_CALLER) {
        return Reduce(input, ::cuda::minimum<>(), valid_items, site);
    }
    template <typename Op>
    SIM_INLINE T Reduce(T input, Op op, int valid_items = LOGICAL_WARP_THREADS, ::sim::Site site = SIM_CALLER) {
        int lane = static_cast<int>(::sim::lane_index() % LOGICAL_WARP_THREADS);
        for (int distance = 1; distance < LOGICAL_WARP_THREADS; distance *= 2) {
            T other = ::sim::shuffle_value(site, ::sim::Shuffle::down, members(), input,
                                           static_cast<unsigned>(distance), LOGICAL_WARP_THREADS);
            if (lane + distance < valid_items && lane + distance < LOGICAL_WARP_THREADS) input = op(input, other);
        }
        return input;
    }

  private:
    static SIM_INLINE unsigned members() {
        constexpr unsigned ones = LOGICAL_WARP_THREADS == 32 ? ~0u : (1u << (LOGICAL_WARP_THREADS % 32)) - 1;
        return ones << (::sim::lane_index() / LOGICAL_WARP_THREADS * LOGICAL_WARP_THREADS);
    }
};

}  // namespace cub
