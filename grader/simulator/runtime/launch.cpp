// A launch from start to end: CUDA's limits, workers, blocks, and the result.
#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "block_order.h"
#include "faults.h"
#include "given_stream.h"
#include "growable.h"
#include "graphs.h"
#include "kernels.h"
#include "last_error.h"
#include "limits.h"
#include "submission_sandbox/sandbox.h"
#include "program.h"
#include "registry.h"
#include "scheduler.h"
#include "operation.h"
#include "sampling.h"
#include "settings.h"
#include "sim/error_codes.h"
#include "streams.h"

namespace sim {

namespace {

uint64_t launch_count = 0;
Worker* workers[max_workers];

// Launches by a kernel, with copies of their arguments. They run after the grid that launched them has ended.
Growable<Operation> children;
pthread_mutex_t children_lock = PTHREAD_MUTEX_INITIALIZER;

Worker* get_worker(unsigned number) {
    if (!workers[number]) workers[number] = new (std::nothrow) Worker();
    if (workers[number]) workers[number]->number = number;
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
HelperThread helpers[max_workers];
unsigned helper_count = 0;

void* help(void* argument) {
    auto* helper = static_cast<HelperThread*>(argument);
    work(*helper->worker, *helper->grid);
    return nullptr;
}

void run_workers(Grid& grid) {
    FaultHandlers handlers(grid);
    Worker* first = get_worker(0);
    if (!first) {
        record_fault(grid, {events::FaultKind::out_of_memory, nullptr, nullptr, nullptr, nullptr, false},
                     cudaErrorMemoryAllocation);
        return;
    }
    helper_count = 0;
    work(*first, grid);
    for (unsigned i = 0; i < helper_count; ++i) pthread_join(helpers[i].thread, nullptr);
}

// Returns the cluster dimensions, from the launch configuration or the kernel.
dim3 cluster_of(const LaunchConfig& config) {
    dim3 cluster = config.cluster.x ? config.cluster : cluster_dimensions_of(config.kernel);
    return cluster.x ? cluster : dim3(1, 1, 1);
}

bool waits_for_host(const events::Fault& fault) {
    return fault.kind == events::FaultKind::infinite_loop && fault.thread && fault.thread->watched &&
           events::waits_for_host(fault.thread->watched);
}

void describe(Launch& launch, const LaunchConfig& config, const char* name) {
    launch.kernel_name = name;
    launch.caller = config.caller;
    launch.grid = config.grid;
    launch.block = config.block;
    launch.dynamic_shared_bytes = config.dynamic_shared_bytes;
    launch.cooperative = config.cooperative;
}

int run(const LaunchConfig& config, const char* name, void (*body)(void*), void* context) {
    Grid grid{};
    describe(grid, config, name);
    grid.programmatic = config.programmatic;
    grid.cluster = cluster_of(config);
    grid.has_clusters = config.cluster.x != 0 || cluster_dimensions_of(config.kernel).x != 0;
    grid.clusters =
        dim3(config.grid.x / grid.cluster.x, config.grid.y / grid.cluster.y, config.grid.z / grid.cluster.z);
    grid.cluster_size = grid.cluster.x * grid.cluster.y * grid.cluster.z;
    grid.checks_enabled = sampling::checks_launch(name);
    grid.id = ++launch_count;
    grid.body = body;
    grid.context = context;
    grid.parameters = static_cast<const char*>(context);
    grid.parameter_bytes = config.parameter_bytes;
    grid.block_count = static_cast<uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
    grid.cluster_count = grid.block_count / grid.cluster_size;
    if (grid.checks_enabled && sampling::is_on()) {
        grid.sample = sampling::choose_clusters(grid.cluster_count, grid.cluster_size);
        grid.partly_checked = grid.sample.needed < grid.cluster_count;
    }
    // cudaFuncAttributeMaxDynamicSharedMemorySize limits dynamic shared memory. If it is set, static and dynamic memory
    // together may use the maximum of a block.
    bool asked = requested_shared_limit(config.kernel) > 0;
    grid.shared_limit = asked ? limits::shared_with_attribute : limits::shared_without_attribute;
    grid.residency = resident_blocks(config);

    grid.workers = workers_for(grid);
    Grid again = grid;
    events::launch_begin(grid);
    run_workers(grid);
    remember_order(grid);
    if (grid.rolled_back) {
        events::launch_rolled_back();
        grid = again;
        grid.id = ++launch_count;
        grid.workers = 1;
        events::launch_begin(grid);
        run_workers(grid);
    }
    if (grid.checks_enabled) {
        sampling::totals.blocks += grid.started_blocks;
        sampling::totals.checked_blocks += grid.checked_blocks;
    }
    bool waited = grid.faulted && waits_for_host(grid.fault);
    if (waited)
        grid.fault.detail =
            "it waits for the host, which continues only after the kernel has ended: the simulator does not support "
            "this";
    if (grid.faulted && !(waited && is_program())) events::fault(grid, grid.fault);
    events::launch_end(grid);
    if (waited) program_waits_for_host(name, grid.fault.address);
    remember_static_shared(config.kernel, grid.static_shared_bytes);
    return grid.error;
}

// Returns CUDA's error for an invalid configuration, and reports it to the checks.
int refused(const LaunchConfig& config, const char* name) {
    Refusal refusal = validate(config);
    if (!refusal.error) return 0;
    Launch launch{};
    describe(launch, config, name);
    launch.error = refusal.error;
    events::refused(&launch, name, refusal.error, refusal.why);
    return set_error(refusal.error);
}

int run_and_remember(const Operation& operation) {
    int error = run(operation.config, operation.call, operation.body.call, operation.body.context);
    set_fault(error);
    return set_error(error);
}

void run_children() {
    for (;;) {
        Growable<Operation> now;
        {
            MutexLock lock(children_lock);
            now.append(children.begin(), children.size());
            children.clear();
        }
        if (now.empty()) return;
        for (const Operation& child : now) {
            if (!current_fault() && !refused(child.config, child.call)) run_and_remember(child);
            child.body.destroy(child.body.context);
        }
    }
}

}  // namespace

unsigned limits::blocks_per_sm(unsigned threads, size_t shared_bytes) {
    if (threads == 0 || threads > block_threads) return 0;
    unsigned warps = (threads + lanes_per_warp - 1) / lanes_per_warp;
    unsigned by_threads = sm_threads / (warps * lanes_per_warp);
    size_t by_shared = sm_shared / (shared_bytes + reserved_shared);
    unsigned blocks = by_threads < sm_blocks ? by_threads : sm_blocks;
    return by_shared < blocks ? static_cast<unsigned>(by_shared) : blocks;
}

unsigned long long resident_blocks(const LaunchConfig& config) {
    unsigned threads = config.block.x * config.block.y * config.block.z;
    size_t shared = config.dynamic_shared_bytes + static_shared_of(config.kernel);
    return static_cast<unsigned long long>(limits::blocks_per_sm(threads, shared)) * limits::sms;
}

namespace {

Refusal validate_cluster(const LaunchConfig& config) {
    dim3 cluster = config.cluster, fixed = cluster_dimensions_of(config.kernel), grid = config.grid;
    bool asked = cluster.x || cluster.y || cluster.z;
    if (asked && fixed.x && (cluster.x != fixed.x || cluster.y != fixed.y || cluster.z != fixed.z))
        return {cudaErrorInvalidClusterSize,
                "the launch's cluster dimensions differ from the kernel's __cluster_dims__"};
    if (!asked) cluster = fixed;
    if (!asked && !fixed.x) return {};
    if (!cluster.x || !cluster.y || !cluster.z) return {cudaErrorInvalidClusterSize, "the cluster has no blocks"};
    uint64_t blocks = static_cast<uint64_t>(cluster.x) * cluster.y * cluster.z;
    if (blocks > simulated.cluster_blocks ||
        (blocks > limits::portable_cluster && !non_portable_cluster_allowed(config.kernel)))
        return {cudaErrorInvalidClusterSize,
                "the cluster is too large: at most 8 blocks, or 16 on this device after cudaFuncSetAttribute(kernel, "
                "cudaFuncAttributeNonPortableClusterSizeAllowed, 1)"};
    if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
        return {cudaErrorInvalidClusterSize, "the grid dimensions must be multiples of the cluster dimensions"};
    return {};
}

uint64_t count(const dim3& size) { return static_cast<uint64_t>(size.x) * size.y * size.z; }

const char* too_large(const char* what, const dim3& size, const char* limit, const char* hint = "") {
    static char text[240];
    snprintf(text, sizeof text, "the %s is too large: %s, not %u x %u x %u%s", what, limit, size.x, size.y, size.z,
             hint);
    return text;
}

// Asks whether a launch with too large a block has its blocks and threads swapped, if the grid could be a block.
const char* swap_hint(const LaunchConfig& config) {
    static char text[100];
    uint64_t blocks = count(config.grid);
    if (blocks > limits::block_threads || blocks % 32) return "";
    snprintf(text, sizeof text, " (are the %llu blocks and %llu threads swapped? Write <<<blocks, threads>>>)",
             static_cast<unsigned long long>(blocks), static_cast<unsigned long long>(count(config.block)));
    return text;
}

}  // namespace

// The errors are those that CUDA 13.0 returns on an H200, even where the manual names another one. The errors for
// clusters are from the manual.
Refusal validate(const LaunchConfig& config) {
    using namespace limits;
    const dim3& block = config.block;
    const dim3& grid = config.grid;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return {cudaErrorInvalidValue, "the grid has no blocks"};
    if (grid.x > grid_x || grid.y > grid_y || grid.z > grid_z)
        return {cudaErrorInvalidValue, too_large("grid", grid, "at most 2147483647 x 65535 x 65535 blocks")};
    if (block.x == 0 || block.y == 0 || block.z == 0) return {cudaErrorInvalidValue, "the block has no threads"};
    if (block.x > block_x || block.y > block_y || block.z > block_z)
        return {cudaErrorInvalidValue,
                too_large("block", block, "at most 1024 x 1024 x 64 threads", swap_hint(config))};
    if (count(block) > block_threads)
        return {cudaErrorInvalidValue, too_large("block", block, "at most 1024 threads in total", swap_hint(config))};
    size_t limit = shared_limit_of(config.kernel);
    if (config.dynamic_shared_bytes > limit) {
        static char text[200];
        snprintf(text, sizeof text, "too much dynamic shared memory: %sat most %u KB",
                 limit < shared_with_attribute
                     ? "more than 48 KB needs cudaFuncSetAttribute(kernel, "
                       "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) before the launch, "
                     : "",
                 simulated.block_shared);
        return {cudaErrorInvalidValue, text};
    }
    if (Refusal refusal = validate_cluster(config); refusal.error) return refusal;
    if (config.cooperative && count(grid) > resident_blocks(config))
        return {cudaErrorCooperativeLaunchTooLarge,
                "too many blocks for a cooperative launch: all must be resident at once, "
                "cudaOccupancyMaxActiveBlocksPerMultiprocessor returns how many fit"};
    return {};
}

bool start_helpers(Grid& grid) {
    for (unsigned i = 1; i < grid.workers; ++i) {
        HelperThread& helper = helpers[helper_count];
        helper.worker = get_worker(i);
        helper.grid = &grid;
        if (helper.worker && pthread_create(&helper.thread, nullptr, help, &helper) == 0) ++helper_count;
    }
    return helper_count > 0;
}

void run_grid(const LaunchConfig& config, const char* name, const LaunchBody& body) {
    const void* caller = __builtin_return_address(0);
    sandbox::check_function(reinterpret_cast<const void*>(body.call), caller);
    if (current_thread) {
        sandbox::check_function(reinterpret_cast<const void*>(body.clone), caller);
        sandbox::check_function(reinterpret_cast<const void*>(body.destroy), caller);
        in_block_order("its threads launch kernels");
        Operation child = {OperationKind::kernel, name, nullptr};
        child.config = config;
        child.body = body;
        child.body.context = body.clone(body.context);
        MutexLock lock(children_lock);
        children.push(child);
        return;
    }
    if (!graphs::collecting()) check_stream(name, config.stream, caller);
    Operation operation = {OperationKind::kernel, name, nullptr};
    operation.config = config;
    if (!config.caller) operation.config.caller = caller;
    operation.body = body;
    streams::submit(operation, config.stream);
}

cudaError_t admissible_kernel(const Operation& operation) {
    return static_cast<cudaError_t>(refused(operation.config, operation.call));
}

cudaError_t perform_kernel(const Operation& operation) {
    int error = run_and_remember(operation);
    program_launch_ended(operation.call);
    run_children();
    return static_cast<cudaError_t>(error);
}

}  // namespace sim
