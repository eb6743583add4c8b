// The names of the operations that block a thread.
#include "runtime/thread.h"
#include "sim/warp.h"

namespace sim {

const char* wait_name(Wait wait, uint8_t detail) {
    switch (wait) {
        case Wait::none:
            return "nothing";
        case Wait::block_barrier:
            return "__syncthreads";
        case Wait::named_barrier:
            return "bar.sync";
        case Wait::grid_barrier:
            return "grid.sync()";
        case Wait::cluster_barrier:
            return "cluster.sync()";
        case Wait::warp_barrier:
            return "__syncwarp";
        case Wait::shuffle:
            switch (static_cast<Shuffle>(detail)) {
                case Shuffle::index:
                    return "__shfl_sync";
                case Shuffle::up:
                    return "__shfl_up_sync";
                case Shuffle::down:
                    return "__shfl_down_sync";
                case Shuffle::exclusive_or:
                    return "__shfl_xor_sync";
            }
            return "__shfl_sync";
        case Wait::vote:
            switch (static_cast<Vote>(detail)) {
                case Vote::ballot:
                    return "__ballot_sync";
                case Vote::all:
                    return "__all_sync";
                case Vote::any:
                    return "__any_sync";
                case Vote::uniform:
                    return "__uni_sync";
            }
            return "__ballot_sync";
        case Wait::match:
            return detail ? "__match_all_sync" : "__match_any_sync";
        case Wait::reduce:
            return "__reduce_sync";
        case Wait::exchange:
            return "warp-wide instruction";
        case Wait::active_mask:
            return "__activemask";
        case Wait::mbarrier:
            return "mbarrier";
        case Wait::warpgroup:
            return "warpgroup-wide instruction";
    }
    return "unknown";
}

}  // namespace sim
