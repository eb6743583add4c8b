// cub::BlockScan: each thread of a block gets the reduction over the threads up to it.
//
// Each warp scans with shuffles, and its last lane writes the warp's total to the shared TempStorage. After a barrier
// each thread adds the totals of the warps before its own. Reuse of the storage needs a barrier first.
#pragma once

#include "cub/warp/warp_scan.cuh"
#include "sim/barrier.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockScan {
    static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
    static constexpr int warps = (threads + 31) / 32;

  public:
    struct TempStorage {
        T warp_totals[warps];
    };

    SIM_INLINE explicit BlockScan(TempStorage& storage) : storage_(storage) {}

    SIM_INLINE void InclusiveSum(T input, T& output, ::sim::Site site = SIM_CALLER) {
        T total;
        InclusiveSum(input, output, total, site);
    }
    SIM_INLINE void InclusiveSum(T input, T& output, T& block_aggregate, ::sim::Site site = SIM_CALLER) {
        InclusiveScan(input, output, ::cuda::std::plus<>(), block_aggregate, site);
    }
    SIM_INLINE void ExclusiveSum(T input, T& output, ::sim::Site site = SIM_CALLER) {
        T total;
        ExclusiveSum(input, output, total, site);
    }
    SIM_INLINE void ExclusiveSum(T input, T& output, T& block_aggregate, ::sim::Site site = SIM_CALLER) {
        ExclusiveScan(input, output, T(), ::cuda::std::plus<>(), block_aggregate, site);
    }
    template <int ITEMS_PER_THREAD>
    SIM_INLINE void InclusiveSum(T (&inputs)[ITEMS_PER_THREAD], T (&outputs)[ITEMS_PER_THREAD],
                                 ::sim::Site site = SIM_CALLER) {
        T own = sum_of(inputs), sum;
        ExclusiveSum(own, sum, site);
        for (int i = 0; i < ITEMS_PER_THREAD; ++i) outputs[i] = sum = sum + inputs[i];
    }
    template <int ITEMS_PER_THREAD>
    SIM_INLINE void ExclusiveSum(T (&inputs)[ITEMS_PER_THREAD], T (&outputs)[ITEMS_PER_THREAD],
                                 ::sim::Site site = SIM_CALLER) {
        T own = sum_of(inputs), sum;
        ExclusiveSum(own, sum, site);
        for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
            T next = sum + inputs[i];
            outputs[i] = sum;
            sum = next;
        }
    }

    template <typename Op>
    SIM_INLINE void InclusiveScan(T input, T& output, Op op, ::sim::Site site = SIM_CALLER) {
        T total;
        InclusiveScan(input, output, op, total, site);
    }
    template <typename Op>
    SIM_INLINE void InclusiveScan(T input, T& output, Op op, T& block_aggregate, ::sim::Site site = SIM_CALLER) {
        T sum = scan_warp(input, op, site);
        share_total(sum, site);
        T before, total;
        bool any = totals(op, before, total);
        output = any ? op(before, sum) : sum;
        block_aggregate = total;
    }
    template <typename Op>
    SIM_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, ::sim::Site site = SIM_CALLER) {
        T total;
        ExclusiveScan(input, output, initial_value, op, total, site);
    }
    template <typename Op>
    SIM_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, T& block_aggregate,
                                  ::sim::Site site = SIM_CALLER) {
        T sum = scan_warp(input, op, site);
        T left = ::sim::shuffle_value(site, ::sim::Shuffle::up, members(), sum, lane() ? 1 : 0);
        share_total(sum, site);
        T before, total;
        bool any = totals(op, before, total);
        T result = initial_value;
        if (any) result = op(result, before);
        if (lane() > 0) result = op(result, left);
        output = result;
        block_aggregate = total;
    }

  private:
    template <int ITEMS_PER_THREAD>
    static SIM_INLINE T sum_of(T (&inputs)[ITEMS_PER_THREAD]) {
        T sum = inputs[0];
        for (int i = 1; i < ITEMS_PER_THREAD; ++i) sum = sum + inputs[i];
        return sum;
    }
    static SIM_INLINE int thread() { return static_cast<int>(::sim::linear_thread_index()); }
    static SIM_INLINE unsigned lane() { return ::sim::lane_index(); }
    static SIM_INLINE int lanes_in_warp() {
        int first = thread() / 32 * 32;
        return threads - first < 32 ? threads - first : 32;
    }
    static SIM_INLINE unsigned members() {
        return lanes_in_warp() == 32 ? ::sim::all_lanes : (1u << lanes_in_warp()) - 1;
    }
    template <typename Op>
    static SIM_INLINE T scan_warp(T sum, Op op, ::sim::Site site) {
        for (unsigned distance = 1; distance < 32; distance *= 2) {
            T before = ::sim::shuffle_value(site, ::sim::Shuffle::up, members(), sum, distance);
            if (lane() >= distance) sum = op(before, sum);
        }
        return sum;
    }
    SIM_INLINE void share_total(T sum, ::sim::Site site) {
        if (static_cast<int>(lane()) == lanes_in_warp() - 1) storage_.warp_totals[thread() / 32] = sum;
        ::sim::block_barrier(site);
    }
    // Computes the total of the warps before this thread's, and of the whole block. Returns false in the first warp.
    template <typename Op>
    SIM_INLINE bool totals(Op op, T& before, T& total) {
        int warp = thread() / 32;
        total = storage_.warp_totals[0];
        before = total;
        for (int other = 1; other < warps; ++other) {
            if (other == warp) before = total;
            total = op(total, storage_.warp_totals[other]);
        }
        return warp > 0;
    }

    TempStorage& storage_;
};

}  // namespace cub
