// Cooperative groups: a block, a cluster, a grid, a tile of 1 to 32 lanes of a warp, the active lanes. Reductions are
// in cooperative_groups/reduce.h, scans in cooperative_groups/scan.h, asynchronous copies in
// cooperative_groups/memcpy_async.h.
#pragma once

#include "sim/barrier.h"
#include "sim/cluster.h"
#include "sim/collective.h"

namespace cooperative_groups {

// A group of any kind, for functions that accept both blocks and tiles.
class thread_group {
  public:
    enum class Kind { block, cluster, grid, lanes };

    void sync(::sim::Site site = SIM_CALLER) const;
    unsigned long long size() const { return count_; }
    unsigned long long num_threads() const { return count_; }
    unsigned long long thread_rank() const { return rank_; }

  protected:
    constexpr thread_group(Kind kind, unsigned mask, unsigned long long count, unsigned long long rank)
        : kind_(kind), mask_(mask), count_(count), rank_(rank) {}

    Kind kind_;
    unsigned mask_;  // bit i: lane i is a member
    unsigned long long count_, rank_;

    friend thread_group tiled_partition(const thread_group& parent, unsigned tile_size);
};

SIM_INLINE void thread_group::sync(::sim::Site site) const {
    if (kind_ == Kind::block) {
        ::sim::block_barrier(site);
    } else if (kind_ == Kind::cluster) {
        ::sim::cluster_barrier(site);
    } else if (kind_ == Kind::grid) {
        ::sim::grid_barrier(site);
    } else {
        ::sim::warp_barrier(site, mask_);
    }
}

// ----------------------------------------------------------------------------------------------------- block, cluster and grid

class thread_block : public thread_group {
  public:
    // The token that arrive() returns and wait() takes. Both use the same barrier as sync().
    class arrival_token {};

    static SIM_INLINE void sync(::sim::Site site = SIM_CALLER) { ::sim::block_barrier(site); }
    SIM_INLINE arrival_token barrier_arrive() const { return arrival_token(); }
    SIM_INLINE void barrier_wait(arrival_token&&, ::sim::Site site = SIM_CALLER) const { ::sim::block_barrier(site); }

    static SIM_INLINE unsigned thread_rank() { return ::sim::linear_thread_index(); }
    static SIM_INLINE unsigned num_threads() {
        dim3 block = ::sim::block_dimensions();
        return block.x * block.y * block.z;
    }
    static SIM_INLINE unsigned size() { return num_threads(); }
    static SIM_INLINE dim3 group_index() { return ::sim::block_index(); }
    static SIM_INLINE dim3 thread_index() { return ::sim::thread_index(); }
    static SIM_INLINE dim3 group_dim() { return ::sim::block_dimensions(); }
    static SIM_INLINE dim3 dim_threads() { return ::sim::block_dimensions(); }

  private:
    SIM_INLINE thread_block() : thread_group(Kind::block, ::sim::all_lanes, num_threads(), thread_rank()) {}
    friend thread_block this_thread_block();
};

SIM_INLINE thread_block this_thread_block() { return thread_block(); }

// Blocks that run at the same time and can access each other's shared memory.
class cluster_group : public thread_group {
  public:
    class arrival_token {};

    static SIM_INLINE void sync(::sim::Site site = SIM_CALLER) { ::sim::cluster_barrier(site); }
    static SIM_INLINE arrival_token barrier_arrive(::sim::Site site = SIM_CALLER) {
        ::sim::cluster_arrive(site, true);
        return arrival_token();
    }
    static SIM_INLINE void barrier_wait(::sim::Site site = SIM_CALLER) { ::sim::cluster_wait(site); }
    static SIM_INLINE void barrier_wait(arrival_token&&, ::sim::Site site = SIM_CALLER) { ::sim::cluster_wait(site); }

    static SIM_INLINE unsigned int query_shared_rank(const void* address) { return ::sim::shared_rank(address); }
    template <typename T>
    static SIM_INLINE T* map_shared_rank(T* address, int rank, ::sim::Site site = SIM_CALLER) {
        return static_cast<T*>(::sim::map_shared_rank(
            site, const_cast<const void*>(static_cast<const volatile void*>(address)), static_cast<unsigned>(rank)));
    }

    static SIM_INLINE dim3 block_index() { return ::sim::block_index_in_cluster(); }
    static SIM_INLINE unsigned int block_rank() { return ::sim::block_rank(); }
    static SIM_INLINE dim3 dim_blocks() { return ::sim::cluster_dimensions(); }
    static SIM_INLINE unsigned int num_blocks() { return ::sim::cluster_size(); }
    static SIM_INLINE dim3 thread_index() {
        dim3 block = ::sim::block_dimensions(), at = block_index();
        uint3 thread = ::sim::thread_index();
        return dim3(at.x * block.x + thread.x, at.y * block.y + thread.y, at.z * block.z + thread.z);
    }
    static SIM_INLINE dim3 dim_threads() {
        dim3 block = ::sim::block_dimensions(), blocks = dim_blocks();
        return dim3(blocks.x * block.x, blocks.y * block.y, blocks.z * block.z);
    }
    static SIM_INLINE unsigned int thread_rank() {
        return block_rank() * thread_block::num_threads() + ::sim::linear_thread_index();
    }
    static SIM_INLINE unsigned int num_threads() { return num_blocks() * thread_block::num_threads(); }
    static SIM_INLINE unsigned int size() { return num_threads(); }

  private:
    SIM_INLINE cluster_group() : thread_group(Kind::cluster, ::sim::all_lanes, num_threads(), thread_rank()) {}
    friend cluster_group this_cluster();
};

SIM_INLINE cluster_group this_cluster() { return cluster_group(); }

// sync requires cudaLaunchCooperativeKernel: only then are all blocks resident.
class grid_group : public thread_group {
  public:
    SIM_INLINE void sync(::sim::Site site = SIM_CALLER) const { ::sim::grid_barrier(site); }
    static SIM_INLINE bool is_valid() { return ::sim::is_cooperative(); }

    static SIM_INLINE unsigned long long block_rank() {
        uint3 block = ::sim::block_index();
        dim3 grid = ::sim::grid_dimensions();
        return block.x +
               static_cast<unsigned long long>(grid.x) * (block.y + static_cast<unsigned long long>(grid.y) * block.z);
    }
    static SIM_INLINE unsigned long long num_blocks() {
        dim3 grid = ::sim::grid_dimensions();
        return static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
    }
    static SIM_INLINE unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static SIM_INLINE unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static SIM_INLINE unsigned long long size() { return num_threads(); }
    static SIM_INLINE dim3 group_dim() { return ::sim::grid_dimensions(); }
    static SIM_INLINE dim3 dim_blocks() { return ::sim::grid_dimensions(); }
    static SIM_INLINE dim3 block_index() { return ::sim::block_index(); }

  private:
    SIM_INLINE grid_group() : thread_group(Kind::grid, ::sim::all_lanes, num_threads(), thread_rank()) {}
    friend grid_group this_grid();
};

SIM_INLINE grid_group this_grid() { return grid_group(); }

// -------------------------------------------------------------------------------------------------- lanes of a warp

// Common base of tiles and coalesced groups. Shuffles and votes number lanes by their rank in the group.
class lane_group : public thread_group {
  public:
    SIM_INLINE void sync(::sim::Site site = SIM_CALLER) const { ::sim::warp_barrier(site, mask_); }
    SIM_INLINE unsigned num_threads() const { return static_cast<unsigned>(count_); }
    SIM_INLINE unsigned size() const { return static_cast<unsigned>(count_); }
    SIM_INLINE unsigned thread_rank() const { return static_cast<unsigned>(rank_); }

    SIM_INLINE int any(int predicate, ::sim::Site site = SIM_CALLER) const {
        return static_cast<int>(::sim::warp_vote(site, ::sim::Vote::any, mask_, predicate != 0));
    }
    SIM_INLINE int all(int predicate, ::sim::Site site = SIM_CALLER) const {
        return static_cast<int>(::sim::warp_vote(site, ::sim::Vote::all, mask_, predicate != 0));
    }
    SIM_INLINE unsigned ballot(int predicate, ::sim::Site site = SIM_CALLER) const {
        return ranks_of(::sim::warp_vote(site, ::sim::Vote::ballot, mask_, predicate != 0));
    }
    template <typename T>
    SIM_INLINE unsigned match_any(T value, ::sim::Site site = SIM_CALLER) const {
        return ranks_of(::sim::match_any(site, mask_, value));
    }
    template <typename T>
    SIM_INLINE unsigned match_all(T value, int& predicate, ::sim::Site site = SIM_CALLER) const {
        return ranks_of(::sim::match_all(site, mask_, value, &predicate));
    }
    // The number of this group among those of its partition, and how many there are.
    SIM_INLINE unsigned meta_group_rank() const { return meta_rank_; }
    SIM_INLINE unsigned meta_group_size() const { return meta_size_; }
    // The members as a mask of lanes, for the reductions and scans.
    SIM_INLINE unsigned lane_mask() const { return mask_; }

  protected:
    SIM_INLINE lane_group(unsigned mask, unsigned count, unsigned rank, unsigned meta_rank, unsigned meta_size)
        : thread_group(Kind::lanes, mask, count, rank), meta_rank_(meta_rank), meta_size_(meta_size) {}

    // Converts a mask of lanes to a mask of ranks in the group.
    SIM_INLINE unsigned ranks_of(unsigned lanes) const {
        if (((mask_ >> __builtin_ctz(mask_)) & ((mask_ >> __builtin_ctz(mask_)) + 1)) == 0) {
            return (lanes & mask_) >> __builtin_ctz(mask_);  // contiguous lanes need only a shift
        }
        unsigned ranks = 0, rank = 0;
        for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank) {
            if (lanes & rest & -rest) ranks |= 1u << rank;
        }
        return ranks;
    }

  private:
    unsigned meta_rank_, meta_size_;
};

// SIZE consecutive lanes, a power of two up to 32.
template <unsigned int SIZE, typename ParentT = void>
class thread_block_tile;

template <unsigned int SIZE>
class thread_block_tile<SIZE, void> : public lane_group {
    static_assert(SIZE >= 1 && (SIZE & (SIZE - 1)) == 0, "the size of a tile is a power of two");
    static_assert(SIZE <= 32, "tiles of more than one warp are not simulated");

  public:
    static constexpr SIM_INLINE unsigned num_threads() { return SIZE; }
    static constexpr SIM_INLINE unsigned size() { return SIZE; }
    template <typename T>
    SIM_INLINE T shfl(T value, int source_rank, ::sim::Site site = SIM_CALLER) const {
        return ::sim::shuffle_value(site, ::sim::Shuffle::index, mask_, value, static_cast<unsigned>(source_rank),
                                    SIZE);
    }
    template <typename T>
    SIM_INLINE T shfl_down(T value, unsigned delta, ::sim::Site site = SIM_CALLER) const {
        return ::sim::shuffle_value(site, ::sim::Shuffle::down, mask_, value, delta, SIZE);
    }
    template <typename T>
    SIM_INLINE T shfl_up(T value, unsigned delta, ::sim::Site site = SIM_CALLER) const {
        return ::sim::shuffle_value(site, ::sim::Shuffle::up, mask_, value, delta, SIZE);
    }
    template <typename T>
    SIM_INLINE T shfl_xor(T value, unsigned lane_mask, ::sim::Site site = SIM_CALLER) const {
        return ::sim::shuffle_value(site, ::sim::Shuffle::exclusive_or, mask_, value, lane_mask, SIZE);
    }

  protected:
    SIM_INLINE thread_block_tile(unsigned meta_rank, unsigned meta_size)
        : lane_group((SIZE == 32 ? ~0u : (1u << (SIZE & 31)) - 1) << (::sim::lane_index() & ~(SIZE - 1)), SIZE,
                     ::sim::lane_index() & (SIZE - 1), meta_rank, meta_size) {}
};

template <unsigned int SIZE, typename ParentT>
class thread_block_tile : public thread_block_tile<SIZE, void> {
    SIM_INLINE thread_block_tile(unsigned meta_rank, unsigned meta_size)
        : thread_block_tile<SIZE, void>(meta_rank, meta_size) {}
    template <unsigned int S, typename P>
    friend thread_block_tile<S, P> tiled_partition(const P& parent);
};

template <unsigned int SIZE, typename ParentT>
SIM_INLINE thread_block_tile<SIZE, ParentT> tiled_partition(const ParentT& parent) {
    unsigned parent_size = static_cast<unsigned>(parent.num_threads());
    return thread_block_tile<SIZE, ParentT>(static_cast<unsigned>(parent.thread_rank()) / SIZE,
                                            (parent_size + SIZE - 1) / SIZE);
}

class coalesced_group;
namespace detail {
// Creates groups of selected lanes. Only the functions below may do so.
struct NewGroup {
    static coalesced_group of(unsigned lanes, unsigned meta_rank = 0, unsigned meta_size = 1);
};
}  // namespace detail

// The lanes of a warp that are active when the group is created.
class coalesced_group : public lane_group {
  public:
    template <typename T>
    SIM_INLINE T shfl(T value, int source_rank, ::sim::Site site = SIM_CALLER) const {
        return from(site, value, static_cast<unsigned>(source_rank) < count_ ? static_cast<unsigned>(source_rank) : 0);
    }
    template <typename T>
    SIM_INLINE T shfl_down(T value, unsigned delta, ::sim::Site site = SIM_CALLER) const {
        return from(site, value, rank_ + delta < count_ ? static_cast<unsigned>(rank_) + delta : thread_rank());
    }
    template <typename T>
    SIM_INLINE T shfl_up(T value, unsigned delta, ::sim::Site site = SIM_CALLER) const {
        return from(site, value, rank_ >= delta ? static_cast<unsigned>(rank_) - delta : thread_rank());
    }

  private:
    SIM_INLINE coalesced_group(unsigned mask, unsigned meta_rank, unsigned meta_size)
        : lane_group(mask, static_cast<unsigned>(__builtin_popcount(mask)), ::sim::rank_in(mask), meta_rank,
                     meta_size) {}

    template <typename T>
    SIM_INLINE T from(::sim::Site site, const T& value, unsigned rank) const {
        return ::sim::shuffle_value(site, ::sim::Shuffle::index, mask_, value, ::sim::lane_of_rank(mask_, rank));
    }

    friend struct detail::NewGroup;
};

SIM_INLINE coalesced_group detail::NewGroup::of(unsigned lanes, unsigned meta_rank, unsigned meta_size) {
    return coalesced_group(lanes, meta_rank, meta_size);
}

SIM_INLINE coalesced_group coalesced_threads() { return detail::NewGroup::of(::sim::active_mask()); }

// Splits a group of lanes: lanes with equal labels form a group.
template <typename Group, typename Label>
SIM_INLINE coalesced_group labeled_partition(const Group& parent, Label label, ::sim::Site site = SIM_CALLER) {
    unsigned members = ::sim::match_any(site, parent.lane_mask(), label);
    // The groups are numbered by their lowest lanes.
    unsigned leaders = ::sim::warp_vote(site, ::sim::Vote::ballot, parent.lane_mask(), ::sim::rank_in(members) == 0);
    unsigned lowest = members & -members;
    return detail::NewGroup::of(members, static_cast<unsigned>(__builtin_popcount(leaders & (lowest - 1))),
                                static_cast<unsigned>(__builtin_popcount(leaders)));
}
template <typename Group>
SIM_INLINE coalesced_group binary_partition(const Group& parent, bool predicate, ::sim::Site site = SIM_CALLER) {
    unsigned yes = ::sim::warp_vote(site, ::sim::Vote::ballot, parent.lane_mask(), predicate);
    return detail::NewGroup::of(predicate ? yes : parent.lane_mask() & ~yes, predicate ? 0 : 1, 2);
}

// cooperative_groups::tiled_partition for a tile size that is known only at run time. The group is partitioned into
// tiles of `tile_size` lanes.
inline thread_group tiled_partition(const thread_group& parent, unsigned tile_size) {
    unsigned rank = ::sim::lane_index() & (tile_size - 1);
    unsigned mask = (tile_size >= 32 ? ~0u : (1u << tile_size) - 1) << (::sim::lane_index() - rank);
    return thread_group(thread_group::Kind::lanes, mask & parent.mask_, tile_size, rank);
}

// ---------------------------------------------------------------------------------------------------- free functions

template <typename Group>
SIM_INLINE void sync(const Group& group, ::sim::Site site = SIM_CALLER) {
    group.sync(site);
}
template <typename Group>
SIM_INLINE auto thread_rank(const Group& group) {
    return group.thread_rank();
}
template <typename Group>
SIM_INLINE auto group_size(const Group& group) {
    return group.size();
}
// invoke_one: the thread with rank 0 of the group calls the function.
template <typename Group, typename Function, typename... Arguments>
SIM_INLINE void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
    if (group.thread_rank() == 0) function(static_cast<Arguments&&>(arguments)...);
}

}  // namespace cooperative_groups
