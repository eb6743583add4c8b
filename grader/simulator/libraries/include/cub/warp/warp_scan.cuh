// cub::WarpScan: each lane of a logical warp gets the reduction over the lanes up to it.
#pragma once

#include "cuda/functional"
#include "sim/collective.h"

namespace cub {

template <typename T, int LOGICAL_WARP_THREADS = 32>
class WarpScan {
    static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32 &&
                      (LOGICAL_WARP_THREADS & (LOGICAL_WARP_THREADS - 1)) == 0,
                  "logical warps of a power of two up to 32 lanes are simulated");

  public:
    struct TempStorage {};

    SIM_INLINE explicit WarpScan(TempStorage&) {}

    SIM_INLINE void InclusiveSum(T input, T& output, ::sim::Site site = SIM_CALLER) {
        InclusiveScan(input, output, ::cuda::std::plus<>(), site);
    }
    SIM_INLINE void InclusiveSum(T input, T& output, T& aggregate, ::sim::Site site = SIM_CALLER) {
        InclusiveScan(input, output, ::cuda::std::plus<>(), aggregate, site);
    }
    SIM_INLINE void ExclusiveSum(T input, T& output, ::sim::Site site = SIM_CALLER) {
        ExclusiveScan(input, output, T(), ::cuda::std::plus<>(), site);
    }
    SIM_INLINE void ExclusiveSum(T input, T& output, T& aggregate, ::sim::Site site = SIM_CALLER) {
        ExclusiveScan(input, output, T(), ::cuda::std::plus<>(), aggregate, site);
    }

    template <typename Op>
    SIM_INLINE void InclusiveScan(T input, T& output, Op op, ::sim::Site site = SIM_CALLER) {
        output = inclusive(input, op, site);
    }
    template <typename Op>
    SIM_INLINE void InclusiveScan(T input, T& output, Op op, T& aggregate, ::sim::Site site = SIM_CALLER) {
        T sums = inclusive(input, op, site);
        aggregate = Broadcast(sums, LOGICAL_WARP_THREADS - 1, site);
        output = sums;
    }
    template <typename Op>
    SIM_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, ::sim::Site site = SIM_CALLER) {
        T sums = inclusive(input, op, site);
        output = shifted(sums, initial_value, op, site);
    }
    template <typename Op>
    SIM_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, T& aggregate,
                                  ::sim::Site site = SIM_CALLER) {
        T sums = inclusive(input, op, site);
        aggregate = Broadcast(sums, LOGICAL_WARP_THREADS - 1, site);
        output = shifted(sums, initial_value, op, site);
    }

    SIM_INLINE T Broadcast(T input, unsigned source_lane, ::sim::Site site = SIM_CALLER) {
        return ::sim::shuffle_value(site, ::sim::Shuffle::index, members(), input, source_lane, LOGICAL_WARP_THREADS);
    }

  private:
    template <typename Op>
    SIM_INLINE T inclusive(T sum, Op op, ::sim::Site site) {
        for (unsigned distance = 1; distance < LOGICAL_WARP_THREADS; distance *= 2) {
            T before = up(sum, distance, site);
            if (lane() >= distance) sum = op(before, sum);
        }
        return sum;
    }
    template <typename Op>
    SIM_INLINE T shifted(T sums, T initial_value, Op op, ::sim::Site site) {
        T before = up(sums, 1, site);
        return lane() == 0 ? initial_value : static_cast<T>(op(initial_value, before));
    }
    SIM_INLINE T up(T value, unsigned distance, ::sim::Site site) {
        return ::sim::shuffle_value(site, ::sim::Shuffle::up, members(), value, distance, LOGICAL_WARP_THREADS);
    }
    static SIM_INLINE unsigned lane() { return ::sim::lane_index() % LOGICAL_WARP_THREADS; }
    static SIM_INLINE unsigned members() {
        constexpr unsigned ones = LOGICAL_WARP_THREADS == 32 ? ~0u : (1u << (LOGICAL_WARP_THREADS % 32)) - 1;
        return ones << (::sim::lane_index() / LOGICAL_WARP_THREADS * LOGICAL_WARP_THREADS);
    }
};

}  // namespace cub
