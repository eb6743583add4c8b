// cub::BlockReduce: all threads of a block reduce their values; only thread 0 gets a valid result.
//
// As in CUB's default algorithm, each warp reduces with shuffles, its first lane writes to the shared TempStorage, and
// after a barrier thread 0 combines these. A second reduction through the same storage therefore needs a barrier first,
// or it overwrites values that thread 0 still needs.
#pragma once

#include "cub/warp/warp_reduce.cuh"
#include "sim/barrier.h"

namespace cub {

// CUB's algorithms give the same result except for rounding. All are simulated by the method described above.
enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

template <typename T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockReduce {
    static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
    static constexpr int warps = (threads + 31) / 32;

  public:
    struct TempStorage {
        T warp_results[warps];
    };

    SIM_INLINE explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

    SIM_INLINE T Sum(T input, int num_valid = threads, ::sim::Site site = SIM_CALLER) {
        return Reduce(input, ::cuda::std::plus<>(), num_valid, site);
    }
    template <int ITEMS_PER_THREAD>
    SIM_INLINE T Sum(T (&inputs)[ITEMS_PER_THREAD], ::sim::Site site = SIM_CALLER) {
        return Reduce(inputs, ::cuda::std::plus<>(), site);
    }

    template <int ITEMS_PER_THREAD, typename Op>
    SIM_INLINE T Reduce(T (&inputs)[ITEMS_PER_THREAD], Op op, ::sim::Site site = SIM_CALLER) {
        T partial = inputs[0];
        for (int i = 1; i < ITEMS_PER_THREAD; ++i) partial = op(partial, inputs[i]);
        return Reduce(partial, op, threads, site);
    }
    // Reduces the values of the first num_valid threads.
    template <typename Op>
    SIM_INLINE T Reduce(T input, Op op, int num_valid = threads, ::sim::Site site = SIM_CALLER) {
        int thread = static_cast<int>(::sim::linear_thread_index());
        int warp = thread / 32;
        T result = reduce_warp(input, op, num_valid - warp * 32, site);
        if (thread % 32 == 0) storage_.warp_results[warp] = result;
        ::sim::block_barrier(site);
        if (thread == 0) {
            for (int other = 1; other < warps; ++other) {
                if (other * 32 < num_valid) result = op(result, storage_.warp_results[other]);
            }
        }
        return result;
    }

  private:
    // In a block smaller than a warp, the mask contains only the lanes that exist.
    template <typename Op>
    static SIM_INLINE T reduce_warp(T input, Op op, int valid, ::sim::Site site) {
        int lane = static_cast<int>(::sim::lane_index());
        int first = static_cast<int>(::sim::linear_thread_index()) - lane;
        int existing = threads - first < 32 ? threads - first : 32;
        unsigned members = existing == 32 ? ::sim::all_lanes : (1u << existing) - 1;
        for (int distance = 1; distance < 32; distance *= 2) {
            T other =
                ::sim::shuffle_value(site, ::sim::Shuffle::down, members, input, source(lane, distance, existing));
            if (lane + distance < valid && lane + distance < existing) input = op(input, other);
        }
        return input;
    }
    // A lane without a partner shuffles from itself.
    static SIM_INLINE unsigned source(int lane, int distance, int existing) {
        return lane + distance < existing ? static_cast<unsigned>(distance) : 0;
    }

    TempStorage& storage_;
};

}  // namespace cub
