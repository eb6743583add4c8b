// The names of the operations that block a thread.
#include "runtime/thread.h"
#include "sim/warp.h"

namespace sim {

namespace {

// In the order of Wait, Shuffle and Vote.
constexpr const char* names[] = {
    "nothing",
    "__syncthreads",
    "bar.sync",
    "grid.sync()",
    "__syncwarp",
    "__shfl_sync",
    "__ballot_sync",
    "__match_any_sync",
    "__reduce_sync",
    "warp-wide instruction",
    "__activemask",
    "mbarrier",
    "warpgroup-wide instruction",
    "cluster.sync()",
};
constexpr const char* shuffle_names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};
constexpr const char* vote_names[] = {"__ballot_sync", "__all_sync", "__any_sync", "__uni_sync"};
static_assert(sizeof names / sizeof *names == static_cast<size_t>(Wait::cluster_barrier) + 1, "a name for each");

}  // namespace

const char* wait_name(const Thread& thread) {
    const Wait wait = thread.wait;
    const uint8_t detail = thread.wait_detail;
    if ((wait == Wait::exchange || wait == Wait::warpgroup) && thread.wait_label) return thread.wait_label;
    if (wait == Wait::shuffle) return shuffle_names[detail % 4];
    if (wait == Wait::vote) return vote_names[detail % 4];
    if (wait == Wait::match && detail) return "__match_all_sync";
    return names[static_cast<unsigned>(wait)];
}

}  // namespace sim
