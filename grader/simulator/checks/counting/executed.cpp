#include "checks/counting/executed.h"

#include <stdlib.h>
#include <string.h>

#include "checks/core/hook_names.h"
#include "checks/core/state.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

// The execution counts of one thread, by code address.
using Executions = HashMap<uint64_t>;

Growable<ExecutedCode> executed;
SpinLock executed_lock;

ExecutedCode& total(const void* address) {
    for (ExecutedCode& code : executed)
        if (code.address == address && code.kernel == the_launch.kernel) return code;
    return executed.push({address, the_launch.kernel, 0, 0, 0});
}

void collect_warp(Executions* lanes, unsigned existing) {
    for (unsigned lane = 0; lane < existing; ++lane) {
        lanes[lane].each([&](uint64_t address, uint64_t own) {
            if (!own) return;
            uint64_t sum = 0, most = 0;  // start at this lane: earlier lanes have not executed this basic block
            for (unsigned other = lane; other < existing; ++other) {
                uint64_t* count = lanes[other].find(address);
                if (!count) continue;
                sum += *count;
                if (most < *count) most = *count;
                *count = 0;
            }
            ExecutedCode& code = total(reinterpret_cast<const void*>(address));
            code.executions += sum;
            code.warp_executions += most;
            code.lanes += most * existing;
        });
    }
}

}  // namespace

void collect_executed(BlockState& block) {
    auto* threads = static_cast<Executions*>(block.executed);
    if (!threads) return;
    Locked locked(executed_lock);
    unsigned count = block.block->thread_count;
    for (unsigned first = 0; first < count; first += lanes_per_warp)
        collect_warp(threads + first, count - first < lanes_per_warp ? count - first : lanes_per_warp);
    delete[] threads;
    block.executed = nullptr;
}

Growable<ExecutedCode>& executed_code() { return executed; }
void forget_executed() { executed.clear(); }

}  // namespace sim::checks

using namespace sim::checks;

HOOK(void, __sanitizer_cov_trace_pc)() {
    sim::Thread* thread = sim::current_thread;
    ThreadState* state = thread ? state_of(*thread) : nullptr;
    if (!state) return;
    void*& executed = state->block->executed;
    if (!executed) sim::in_block_order("what its threads execute is counted");
    if (!executed) executed = new Executions[sim::max_threads_per_block];
    ++static_cast<Executions*>(executed)[thread->linear].at(reinterpret_cast<uint64_t>(__builtin_return_address(0)));
}
