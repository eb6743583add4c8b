// A launch from beginning to end: CUDA's limits, workers, blocks, and what became of them.
#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "faults.h"
#include "given_stream.h"
#include "kernels.h"
#include "last_error.h"
#include "limits.h"
#include "scheduler.h"
#include "settings.h"
#include "sim/error_codes.h"

namespace sim {

namespace {

// One launch at a time, as in a single stream.
pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;
uint64_t launch_count = 0;
Worker* workers[64];

// A launch made by a kernel: it runs when the grid that made it has ended.
struct ChildLaunch {
    LaunchConfig config;
    const char* name;
    void (*body)(void*);
    void* context;
    void (*destroy)(void*);
    ChildLaunch* next;
};
ChildLaunch* children = nullptr;
pthread_mutex_t children_lock = PTHREAD_MUTEX_INITIALIZER;

Worker* get_worker(unsigned number) {
    if (!workers[number]) workers[number] = new (std::nothrow) Worker();
    return workers[number];
}

void work(Worker& worker, Grid& grid) {
    worker.order = settings.order;
    worker.random_state = settings.seed;
    worker.fibers.set_stack_bytes(stack_bytes());
    WorkerSignals signals(worker);
    run_blocks(worker, grid);
}

struct HelperThread {
    pthread_t thread;
    Worker* worker;
    Grid* grid;
};

void* help(void* argument) {
    auto* helper = static_cast<HelperThread*>(argument);
    work(*helper->worker, *helper->grid);
    return nullptr;
}

// The blocks of a cooperative launch wait for each other, so one worker must hold them all.
unsigned worker_count(const Grid& grid) {
    if (grid.cooperative) return 1;
    return grid.block_count < settings.workers ? static_cast<unsigned>(grid.block_count) : settings.workers;
}

void run_workers(Grid& grid) {
    FaultHandlers handlers(grid);
    Worker* first = get_worker(0);
    if (!first) {
        record_fault(grid, {events::FaultKind::out_of_memory, nullptr, nullptr, nullptr, nullptr, false},
                     cudaErrorMemoryAllocation);
        return;
    }
    HelperThread helpers[64];
    unsigned started = 0;
    for (unsigned i = 1; i < grid.workers; ++i) {
        HelperThread& helper = helpers[started];
        helper.worker = get_worker(i);
        helper.grid = &grid;
        if (helper.worker && pthread_create(&helper.thread, nullptr, help, &helper) == 0) ++started;
    }
    work(*first, grid);
    for (unsigned i = 0; i < started; ++i) pthread_join(helpers[i].thread, nullptr);
}

int run(const LaunchConfig& config, const char* name, void (*body)(void*), void* context) {
    Grid grid{};
    grid.kernel_name = name;
    grid.grid = config.grid;
    grid.block = config.block;
    grid.dynamic_shared_bytes = config.dynamic_shared_bytes;
    grid.cooperative = config.cooperative;
    grid.checks_enabled = settings.checks;
    grid.id = ++launch_count;
    grid.body = body;
    grid.context = context;
    grid.block_count = static_cast<uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
    // The attribute limits the dynamic part; with it, static and dynamic together may use all there is.
    bool asked = requested_shared_limit(config.kernel) > 0;
    grid.shared_limit = asked ? limits::shared_with_attribute : limits::shared_without_attribute;
    grid.residency = resident_blocks(config);

    grid.workers = worker_count(grid);
    events::launch_begin(grid);
    run_workers(grid);
    if (grid.faulted) events::fault(grid, grid.fault);
    events::launch_end(grid);
    remember_static_shared(config.kernel, grid.static_shared_bytes);
    return grid.error;
}

// Refuses or runs. The caller holds `launching`.
void attempt(const LaunchConfig& config, const char* name, void (*body)(void*), void* context) {
    if (current_fault()) return;
    const char* why = nullptr;
    int error = validate(config, &why);
    if (error) {
        Launch launch{};
        launch.kernel_name = name;
        launch.grid = config.grid;
        launch.block = config.block;
        launch.dynamic_shared_bytes = config.dynamic_shared_bytes;
        launch.cooperative = config.cooperative;
        launch.error = error;
        events::refused(&launch, name, error, why);
    } else {
        set_fault(run(config, name, body, context));
    }
    set_error(error);
}

ChildLaunch* take_children() {
    pthread_mutex_lock(&children_lock);
    ChildLaunch* newest_first = children;
    children = nullptr;
    pthread_mutex_unlock(&children_lock);
    ChildLaunch* oldest_first = nullptr;
    while (newest_first) {
        ChildLaunch* next = newest_first->next;
        newest_first->next = oldest_first;
        oldest_first = newest_first;
        newest_first = next;
    }
    return oldest_first;
}

void run_children() {
    while (ChildLaunch* child = take_children()) {
        while (child) {
            attempt(child->config, child->name, child->body, child->context);
            child->destroy(child->context);
            ChildLaunch* next = child->next;
            delete child;
            child = next;
        }
    }
}

}  // namespace

unsigned limits::blocks_per_multiprocessor(unsigned threads, size_t shared_bytes) {
    if (threads == 0 || threads > block_threads) return 0;
    unsigned warps = (threads + lanes_per_warp - 1) / lanes_per_warp;
    unsigned by_threads = multiprocessor_threads / (warps * lanes_per_warp);
    size_t by_shared = multiprocessor_shared / (shared_bytes + reserved_shared);
    unsigned blocks = by_threads < multiprocessor_blocks ? by_threads : multiprocessor_blocks;
    return by_shared < blocks ? static_cast<unsigned>(by_shared) : blocks;
}

unsigned long long resident_blocks(const LaunchConfig& config) {
    unsigned threads = config.block.x * config.block.y * config.block.z;
    size_t shared = config.dynamic_shared_bytes + static_shared_of(config.kernel);
    return static_cast<unsigned long long>(limits::blocks_per_multiprocessor(threads, shared)) *
           limits::multiprocessors;
}

// The error is what CUDA 13.0's runtime gives on an H200 for each of these, whatever name its manual has for it.
int validate(const LaunchConfig& config, const char** why) {
    using namespace limits;
    const dim3& block = config.block;
    const dim3& grid = config.grid;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
        *why = "the grid has no blocks";
        return cudaErrorInvalidValue;
    }
    if (grid.x > grid_x || grid.y > grid_y || grid.z > grid_z) {
        *why = "the grid is too large: at most 2147483647 x 65535 x 65535 blocks";
        return cudaErrorInvalidValue;
    }
    if (block.x == 0 || block.y == 0 || block.z == 0) {
        *why = "the block has no threads";
        return cudaErrorInvalidValue;
    }
    if (block.x > block_x || block.y > block_y || block.z > block_z) {
        *why = "the block is too large: at most 1024 x 1024 x 64 threads";
        return cudaErrorInvalidValue;
    }
    if (static_cast<uint64_t>(block.x) * block.y * block.z > block_threads) {
        *why = "the block is too large: at most 1024 threads in all";
        return cudaErrorInvalidValue;
    }
    size_t limit = shared_limit_of(config.kernel);
    if (config.dynamic_shared_bytes > limit) {
        static char text[200];
        snprintf(text, sizeof text, "too much dynamic shared memory: %sat most %u KB",
                 limit < shared_with_attribute
                     ? "more than 48 KB needs cudaFuncSetAttribute(kernel, "
                       "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) before the launch, "
                     : "",
                 simulated.block_shared);
        *why = text;
        return cudaErrorInvalidValue;
    }
    uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    if (config.cooperative && blocks > resident_blocks(config)) {
        *why =
            "a cooperative launch needs all its blocks on the device at once: ask "
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor how many fit";
        return cudaErrorCooperativeLaunchTooLarge;
    }
    return 0;
}

void run_grid(const LaunchConfig& config, const char* name, const LaunchBody& body) {
    if (current_thread) {
        void* copy = body.clone(body.context);
        auto* child = new ChildLaunch{config, name, body.call, copy, body.destroy, nullptr};
        pthread_mutex_lock(&children_lock);
        child->next = children;
        children = child;
        pthread_mutex_unlock(&children_lock);
        return;
    }
    check_stream(name, config.stream, __builtin_return_address(0));
    pthread_mutex_lock(&launching);
    attempt(config, name, body.call, body.context);
    run_children();
    pthread_mutex_unlock(&launching);
}

}  // namespace sim
