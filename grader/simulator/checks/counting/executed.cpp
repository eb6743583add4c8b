#include "checks/counting/executed.h"

#include <stdlib.h>
#include <string.h>

#include "checks/core/hook_names.h"
#include "checks/core/state.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

// The execution counts of one thread, by code address. A hash table that starts with 64 entries, because most kernels
// have few basic blocks.
struct Executions {
    struct Entry {
        const void* address;
        uint64_t count;
    };
    Entry* entries;
    size_t capacity;  // a power of two
    size_t used;

    Entry& find(const void* address) {
        size_t place = static_cast<size_t>(reinterpret_cast<uintptr_t>(address) * uint64_t(0x9E3779B97F4A7C15u) >> 32);
        while (true) {
            Entry& entry = entries[place++ & (capacity - 1)];
            if (entry.address == address || !entry.address) return entry;
        }
    }
    void add(const void* address) {
        if (2 * used >= capacity) grow();
        Entry& entry = find(address);
        if (!entry.address) {
            entry.address = address;
            ++used;
        }
        ++entry.count;
    }
    void grow() {
        Executions larger = {nullptr, capacity ? 2 * capacity : 64, used};
        larger.entries = zeros<Entry>(larger.capacity);
        for (size_t i = 0; i < capacity; ++i)
            if (entries[i].address) larger.find(entries[i].address) = entries[i];
        free(entries);
        *this = larger;
    }
};

Growable<ExecutedCode> executed;
SpinLock executed_lock;

ExecutedCode& total(const void* address) {
    for (ExecutedCode& code : executed)
        if (code.address == address && code.kernel == the_launch.kernel) return code;
    return executed.push({address, the_launch.kernel, 0, 0, 0});
}

void collect_warp(Executions* lanes, unsigned existing) {
    for (unsigned lane = 0; lane < existing; ++lane) {
        for (size_t i = 0; i < lanes[lane].capacity; ++i) {
            const void* address = lanes[lane].entries[i].address;
            if (!address || lanes[lane].entries[i].count == 0) continue;
            uint64_t sum = 0, most = 0;  // start at this lane: earlier lanes have not executed this basic block
            for (unsigned other = lane; other < existing; ++other) {
                if (!lanes[other].capacity) continue;
                uint64_t& count = lanes[other].find(address).count;
                sum += count;
                if (most < count) most = count;
                count = 0;
            }
            ExecutedCode& code = total(address);
            code.executions += sum;
            code.warp_executions += most;
            code.lanes += most * existing;
        }
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
    for (unsigned i = 0; i < max_threads_per_block; ++i) free(threads[i].entries);
    free(threads);
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
    if (!executed) executed = zeros<Executions>(sim::max_threads_per_block);
    static_cast<Executions*>(executed)[thread->linear].add(__builtin_return_address(0));
}
