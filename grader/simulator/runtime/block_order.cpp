#include "block_order.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "registry.h"
#include "settings.h"

namespace sim {

namespace {

constexpr uint64_t none = ~uint64_t(0);
// A waiting worker wakes up after this time and tests whether a signal handler has stopped the launch, because a signal
// handler cannot wake it.
constexpr long patience_nanoseconds = 10000000;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
uint64_t oldest[max_workers];  // per worker, the number of its first cluster that has not ended
bool unordered = false;

// A kernel that had to run on one worker, or whose launch on several workers was rolled back.
struct Known {
    char name[128];
    unsigned rolled_back;
    bool explained;
};
Known known[256];
// After this many rolled-back launches a kernel stays on one worker. One rollback is not enough for that, because some
// causes occur only once: a shared array gets its offset, or shadow cells are split.
constexpr unsigned max_rollbacks = 2;

Known* known_kernel(const char* name) {
    for (Known& one : known) {
        if (!*one.name) strncpy(one.name, name, sizeof one.name - 1);
        if (!strncmp(one.name, name, sizeof one.name - 1)) return &one;
    }
    return nullptr;
}

// Continues the launch with one worker, as if it had been planned that way.
void fall_back_to_one_worker(Grid& grid, const char* what) {
    grid.workers = 1;
    grid.one_worker_reason = what;
    if (grid.checks_enabled) events::fall_back_to_one_worker();
}

void roll_back(Grid& grid, const char* what) {
    if (!grid.stop.raise()) return;
    grid.rolled_back = true;
    grid.one_worker_reason = what;
}

bool is_oldest(const Worker& worker) {
    for (unsigned i = 0; i < worker.grid->workers; ++i)
        if (i != worker.number && oldest[i] < oldest[worker.number]) return false;
    return true;
}

// Returns false when the launch has ended.
bool wait_for_turn(Worker& worker) {
    Grid& grid = *worker.grid;
    MutexLock locked(lock);
    while (!grid.stop.is_raised() && !unordered && !is_oldest(worker)) {
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += patience_nanoseconds;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    return !grid.stop.is_raised();
}

}  // namespace

void in_block_order(const char* what) {
    Worker* worker = current_worker;
    if (!worker || !worker->grid || worker->grid->workers == 1) return;
    Grid& grid = *worker->grid;
    if (!grid.helped) {
        fall_back_to_one_worker(grid, what);
    } else if (can_roll_back(grid)) {
        roll_back(grid, what);
        leave_grid(*worker);
    } else if (!wait_for_turn(*worker)) {
        leave_grid(*worker);
    }
}

namespace {

// Returns whether the next cluster is to run with checks. Called for each cluster in turn.
bool checks_next(Grid& grid) { return grid.partly_checked ? grid.sample.next() : grid.checks_enabled; }

// Called before a cluster runs with checks. With several workers, it waits for its turn in a partly checked launch, so
// the checks see such clusters one after another. Returns false when it must run without checks: the order of the
// blocks was given up.
bool begin_checked(Worker& worker) {
    Grid& grid = *worker.grid;
    if (!sampling::is_on()) return true;
    const bool in_turn = grid.workers > 1 && grid.partly_checked;
    if (in_turn) wait_for_turn(worker);
    MutexLock locked(lock);
    if (in_turn && !is_oldest(worker)) return false;
    grid.checked_blocks += grid.cluster_size;
    return true;
}

uint64_t next_cluster(Worker& worker, bool* checked) {
    Grid& grid = *worker.grid;
    if (grid.workers == 1) {
        uint64_t number = grid.next_cluster.next();
        if (number >= grid.cluster_count) return number;
        grid.started_blocks += grid.cluster_size;
        *checked = checks_next(grid);
        return number;
    }
    MutexLock locked(lock);
    if (!grid.helped && worker.resident_count == 0) {
        for (uint64_t& cluster : oldest) cluster = none;
        unordered = false;
    }
    uint64_t number = grid.next_cluster.next();
    if (number >= grid.cluster_count) return number;
    if (oldest[worker.number] == none) oldest[worker.number] = number;
    grid.started_blocks += grid.cluster_size;
    *checked = checks_next(grid);
    return number;
}

}  // namespace

uint64_t take_cluster(Worker& worker, bool* checked) {
    *checked = false;
    uint64_t number = next_cluster(worker, checked);
    *checked = *checked && begin_checked(worker);
    return number;
}

void cluster_ended(Worker& worker) {
    Grid& grid = *worker.grid;
    if (grid.workers == 1) return;
    if (!grid.helped) {
        grid.helped = true;
        if (!start_helpers(grid)) {
            fall_back_to_one_worker(grid, "no other OS threads could be started");
            return;
        }
    }
    MutexLock locked(lock);
    oldest[worker.number] = none;
    for (const BlockStorage* block = worker.resident; block; block = block->next)
        if (block->cluster->linear < oldest[worker.number]) oldest[worker.number] = block->cluster->linear;
    pthread_cond_broadcast(&changed);
}

void record_fault_in_order(Worker& worker) {
    Grid& grid = *worker.grid;
    bool waits = grid.workers > 1 && grid.helped && !can_roll_back(grid);
    if (!waits || wait_for_turn(worker)) record_fault(grid, worker.fault, worker.fault_error);
}

void let_later_blocks_go() {
    {
        MutexLock locked(lock);
        unordered = true;
        pthread_cond_broadcast(&changed);
    }
    sched_yield();
}

unsigned workers_for(Grid& grid) {
    if (settings.workers == 1 || grid.cluster_count == 1) return 1;
    const char* reason = nullptr;
    Known* kernel = known_kernel(grid.kernel_name);
    if (grid.cooperative)
        reason = "its blocks synchronize at a grid barrier";
    else if (settings.order != Order::forward)
        reason = "a schedule is set for its threads";
    else if (!kernel || kernel->rolled_back >= max_rollbacks)
        reason = "its blocks had to run in order in an earlier launch";
    else if (can_roll_back(grid))
        reason = events::needs_one_worker(grid);
    grid.one_worker_reason = reason;
    if (reason) return 1;
    return grid.cluster_count < settings.workers ? static_cast<unsigned>(grid.cluster_count) : settings.workers;
}

void remember_order(const Grid& grid) {
    if (!grid.one_worker_reason) return;
    Known* kernel = known_kernel(grid.kernel_name);
    if (!kernel) return;
    if (grid.rolled_back) ++kernel->rolled_back;
    if (!settings.explain || kernel->explained) return;
    kernel->explained = true;
    fprintf(stderr, "%s ran on one worker: %s\n", grid.kernel_name, grid.one_worker_reason);
}

void forget_orders() { memset(known, 0, sizeof known); }

}  // namespace sim
