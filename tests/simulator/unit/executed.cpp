// Tests of execution counts of basic blocks, compared with separate counts for each thread.
#include "checks/counting/executed.h"

#include <string.h>

#include <utility>

#include "as_thread.h"
#include "checks/core/hook_names.h"
#include "grid.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

HOOK(void, __sanitizer_cov_trace_pc)();

namespace {

// A thread's table of 64 entries grows three times to hold this many basic blocks.
constexpr unsigned place_count = 256;

// A separate basic block for each number. A statement follows the call, so that it is no tail call and its return
// address lies in this block.
template <unsigned number>
__attribute__((noinline)) void place() {
    __wrap___sanitizer_cov_trace_pc();
    asm volatile("" ::"i"(number));
}

template <unsigned... numbers>
void call(unsigned number, std::integer_sequence<unsigned, numbers...>) {
    static void (*const places[])() = {place<numbers>...};
    places[number]();
}

void execute(sim::Thread* thread, unsigned number, unsigned times = 1) {
    sim::current_thread = thread;
    for (unsigned i = 0; i < times; ++i) call(number, std::make_integer_sequence<unsigned, place_count>());
    sim::current_thread = nullptr;
}
void execute(ThreadState& thread, unsigned number, unsigned times = 1) { execute(thread.thread, number, times); }

void collect(Grid& grid, unsigned block = 0) { collect_executed(*state_of(grid.block(block))); }

// Finds the address at which each basic block is counted. To tell the blocks apart, it executes block i i + 1 times.
struct Addresses {
    const void* of[place_count] = {};
    Addresses() {
        forget_executed();
        Grid grid(1, 1);
        for (unsigned i = 0; i < place_count; ++i) execute(grid.thread(0, 0), i, i + 1);
        collect(grid);
        CHECK_EQUAL(executed_code().size(), place_count);
        for (const ExecutedCode& code : executed_code())
            if (code.executions - 1 < place_count) of[code.executions - 1] = code.address;
        forget_executed();
    }
};

ExecutedCode counted(const void* address, unsigned kernel) {
    ExecutedCode sum = {};
    for (const ExecutedCode& code : executed_code()) {
        if (code.address != address || code.kernel != kernel) continue;
        CHECK(!sum.address);  // an address has at most one entry
        sum = code;
    }
    return sum;
}

bool is(const ExecutedCode& code, uint64_t executions, uint64_t warp_executions, uint64_t lanes) {
    return code.executions == executions && code.warp_executions == warp_executions && code.lanes == lanes;
}

}  // namespace

// A thread's table grows when it is half full. So threads execute a number of basic blocks that fills half of the
// table, one block fewer, or one more. Counts of other threads are looked up as well.
CASE(executions_count_threads_and_warps) {
    constexpr unsigned blocks = 2, threads = 70, some[] = {0, 1, 2, 31, 32, 33, 64, 65, 128, place_count};
    static unsigned times[blocks][threads][place_count];
    const Addresses addresses;
    unit::Random random(3);
    for (unsigned turn = 0; turn < 4; ++turn) {
        memset(times, 0, sizeof times);
        forget_executed();
        Grid grid(blocks, threads);
        for (unsigned b = 0; b < blocks; ++b) {
            for (unsigned t = 0; t < threads; ++t) {
                unsigned first = random.below(place_count), number = some[random.below(10)];
                for (unsigned i = 0; i < 2 * number; ++i) {  // visit each basic block twice, not consecutively
                    unsigned place = (first + i % (number ? number : 1)) % place_count, more = random.below(3);
                    execute(grid.thread(b, t), place, 1 + more);
                    times[b][t][place] += 1 + more;
                }
            }
        }
        CHECK(executed_code().empty());
        for (unsigned b = 0; b < blocks; ++b) collect(grid, b);
        for (unsigned place = 0; place < place_count; ++place) {
            uint64_t sum = 0, most = 0, lanes = 0;
            for (unsigned b = 0; b < blocks; ++b) {
                for (unsigned first = 0; first < threads; first += 32) {
                    unsigned existing = threads - first < 32 ? threads - first : 32;
                    uint64_t most_of_lane = 0;
                    for (unsigned t = first; t < first + existing; ++t) {
                        sum += times[b][t][place];
                        if (most_of_lane < times[b][t][place]) most_of_lane = times[b][t][place];
                    }
                    most += most_of_lane;
                    lanes += most_of_lane * existing;
                }
            }
            CHECK(is(counted(addresses.of[place], the_launch.kernel), sum, most, lanes));
        }
    }
    forget_executed();
}

CASE(executions_are_separate_per_kernel_and_added_over_blocks) {
    const Addresses addresses;
    Grid grid(2, 40);
    const unsigned kernel = the_launch.kernel;
    for (unsigned other : {0, 1, 0}) {
        the_launch.kernel = kernel + other;
        for (unsigned block : {0, 1}) {
            execute(grid.thread(block, 39), 7, 2 + other);
            collect(grid, block);
            collect(grid, block);  // the second call must add nothing
        }
    }
    the_launch.kernel = kernel;
    CHECK_EQUAL(executed_code().size(), 2);
    CHECK(is(counted(addresses.of[7], kernel), 8, 8, 8 * 8));
    CHECK(is(counted(addresses.of[7], kernel + 1), 6, 6, 6 * 8));
    forget_executed();
}

CASE(executions_of_unchecked_threads_are_not_counted) {
    forget_executed();
    Grid grid(1, 32);
    execute(nullptr, 1);
    sim::Thread unchecked = {};
    execute(&unchecked, 1);
    collect(grid);
    CHECK(executed_code().empty());
}

CASE(counting_executions_runs_blocks_in_order) {
    Grid grid(2, 32);
    for (unsigned block : {0, 1}) {
        for (bool first : {true, false}) {
            sim::Grid several = {};
            several.workers = 2;
            auto once = [] { call(5, std::make_integer_sequence<unsigned, place_count>()); };
            CHECK_EQUAL(unit::as_thread(grid.thread(block, 3), once, several), 0);
            // Only the first count of a basic block falls back to one worker, because it adds the block to a table.
            CHECK_EQUAL(several.workers, first ? 1 : 2);
            CHECK(!several.one_worker_reason == !first);
        }
    }
    for (unsigned block : {0, 1}) collect(grid, block);
    forget_executed();
}

CASE(execution_tables_are_freed) {
    CHECK(!unit::leaks([] {
        for (unsigned turn = 0; turn < 16; ++turn) {
            Grid grid(1, 32);
            for (unsigned thread : {0, 31})
                for (unsigned i = 0; i < place_count; ++i) execute(grid.thread(0, thread), i);
            collect(grid);
            forget_executed();
        }
    }));
}
