// Operations of a whole warpgroup (four warps).
#include "limits.h"
#include "misuse.h"
#include "scheduler.h"
#include "sim/mbarrier.h"

namespace sim {

namespace {

// A warpgroup that requests more registers waits until they are free, so all warpgroups together must fit (PTX ISA,
// "setmaxnreg").
void check_registers(Thread& self, Site site) {
    const Block& block = *self.block;
    unsigned total = 0;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        if (!block.warps[w].registers) return;  // unknown, because the compiler chose the number for the launch
        total += block.warps[w].registers * lanes_per_warp;
    }
    if (total > limits::registers) {
        misused(self, site, "setmaxnreg would wait forever: the warps request more registers than an SM has");
    }
}

void set_registers(Warp* first, void* const* arguments) {
    const void* asked = nullptr;
    for (unsigned i = 0; i < warps_per_group * lanes_per_warp; ++i) {
        if (!arguments[i]) continue;
        Warp& warp = first[i / lanes_per_warp];
        Thread& thread = warp.threads[i % lanes_per_warp];
        uint32_t count = *static_cast<const uint32_t*>(arguments[i]);
        if (asked && *static_cast<const uint32_t*>(asked) != count) {
            misused(thread, thread.wait_site, "the warps of a warpgroup execute setmaxnreg with different counts");
        }
        asked = arguments[i];
        warp.registers = count;
    }
}

}  // namespace

void set_max_registers(Site site, uint32_t count) {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = __builtin_return_address(0);
    if (self->block->warp_count % warps_per_group != 0) {
        misused(*self, site, "setmaxnreg requires whole warpgroups: use a multiple of 128 threads per block");
    }
    warpgroup_exchange(site, "setmaxnreg", &count, set_registers, self->call_address);
    check_registers(*self, site);
}

}  // namespace sim
