// Tests of blocks on several workers: shadow cells equal those of sequential blocks, or the launch is rolled back.
#include "checks/synchronization/parallel_blocks.h"

#include "checks/core/access.h"
#include "as_thread.h"
#include "grid.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

char bytes[64];
constexpr unsigned granules = 4;

// A tensor that ends inside a granule, with one site that reads it and one that writes it.
class Tensor {
  public:
    Tensor() {
        forget_regions();
        const int64_t shape[] = {63};
        region_ = &add_allocation({sim::events::MemoryKind::tensor, bytes, 63, "x", "float32", 1, shape, nullptr});
        mark_written(region_->base, region_->bytes);
        track(*region_);
    }
    ~Tensor() { forget_regions(); }
    ShadowCell& cell(unsigned i) { return region_->cells[i]; }
    AccessSite& site(bool write) {
        AccessSite& site = sites_[write];
        site.address = reinterpret_cast<const char*>(sites_) + write;
        site.id = site_id(site.address);
        site.base = region_->base;
        site.cells = region_->cells;
        site.shift = 2;
        site.size_log2 = 2;
        site.window = region_->window();
        site.space = Space::global;
        site.access = write ? Access::write : Access::read;
        site.region = region_;
        return site;
    }

  private:
    Region* region_;
    AccessSite sites_[2] = {};
};

// An access of one byte, one granule or two granules.
struct Step {
    unsigned block, thread, granule;
    bool write;
    unsigned size_log2 = 2;
    bool meets = false;  // the thread's warp synchronizes before the access
    unsigned end() const { return granule + (size_log2 > 2 ? 2 : 1); }
};

sim::Grid of_two_workers() {
    sim::Grid grid = {};
    grid.workers = 2;
    grid.helped = grid.checks_enabled = true;
    return grid;
}

ThreadState& begin(Grid& grid, const Step& step) {
    if (step.meets) grid.syncwarp(step.block, step.thread / 32);
    return grid.thread(step.block, step.thread);
}

// Makes the access with one worker.
void step_alone(Grid& grid, Tensor& x, const Step& step) {
    ThreadState& thread = begin(grid, step);
    AccessSite& site = x.site(step.write);
    for (unsigned i = step.granule; i < step.end(); ++i) {
        if (step.write)
            write_cell(thread, x.cell(i), site, reinterpret_cast<uintptr_t>(bytes) + 4 * i);
        else
            read_cell(thread, x.cell(i), site);
    }
    thread.pending = false;
}

// Makes the access with two workers. Returns null, or the reason if the launch is rolled back.
const char* rolled_back(Grid& grid, Tensor& x, const Step& step) {
    ThreadState& thread = begin(grid, step);
    sim::Grid launch = of_two_workers();
    uintptr_t address = reinterpret_cast<uintptr_t>(bytes) + 4 * step.granule;
    unit::as_thread(
        thread,
        [&] {
            if (step.write)
                write_cells_of_several(thread, x.site(true), address, step.size_log2);
            else
                read_cells_of_several(thread, x.site(false), address, step.size_log2);
        },
        launch);
    thread.pending = false;
    CHECK(!thread.worker->held);
    CHECK(launch.rolled_back == launch.stop.is_raised());
    return launch.rolled_back ? launch.one_worker_reason : nullptr;
}

}  // namespace

CASE(parallel_blocks_leave_the_cells_of_a_sequential_run) {
    unit::Random random(9);
    unsigned conflicts = 0, went_on = 0;
    for (unsigned turn = 0; turn < 4000; ++turn) {
        // Each block mostly accesses its own cells, so that not all runs end with a conflict.
        Step steps[16];
        bool conflict = false, within_block = false;
        const unsigned count = 2 + random.below(15);
        auto random_step = [&](unsigned writes) {
            unsigned block = random.below(3);
            bool write = random.below(writes) == 0;
            unsigned granule = write && turn % 8 ? block : random.below(granules);
            Step step = {block, random.below(2) * 32 + random.below(2), granule, write};
            step.size_log2 = granule % 2 ? 0 : 2 * random.below(2) + random.below(2);
            if (step.size_log2 == 1) step.size_log2 = 2;
            step.meets = random.below(4) == 0;
            return step;
        };
        for (unsigned i = 0; i < count; ++i) {
            const Step& one = steps[i] = random_step(turn % 3 + 2);
            for (unsigned j = 0; j < i; ++j) {
                const Step& other = steps[j];
                if (one.granule >= other.end() || other.granule >= one.end() || !(one.write || other.write)) continue;
                (one.block == other.block ? within_block : conflict) = true;
            }
        }
        Tensor x;
        {  // an earlier launch, most of whose accesses are reads
            Grid grid(3, 64);
            for (unsigned i = 0; i < turn % 8; ++i) step_alone(grid, x, random_step(8));
        }
        ShadowCell before[granules], after[granules];
        memcpy(static_cast<void*>(before), &x.cell(0), sizeof before);
        size_t findings = 0;
        uint32_t first = 0;
        {
            Grid grid(3, 64);
            first = the_launch.first_serial;
            for (unsigned block = 0; block < 3; ++block)
                for (unsigned i = 0; i < count; ++i)
                    if (steps[i].block == block) step_alone(grid, x, steps[i]);
            findings = finding_count();
        }
        memcpy(static_cast<void*>(after), &x.cell(0), sizeof after);
        memcpy(static_cast<void*>(&x.cell(0)), before, sizeof before);
        if (findings && !conflict) continue;  // races inside one block are covered by other tests
        Grid grid(3, 64);
        const char* why = nullptr;
        for (unsigned i = 0; i < count && !why; ++i) why = rolled_back(grid, x, steps[i]);
        CHECK_EQUAL(why != nullptr, conflict);
        CHECK(!why || within_block || !strcmp(why, "its blocks access the same memory, and some write to it"));
        ++(why ? conflicts : went_on);
        // Convert to the serials of this launch. A set with readers of several blocks stores no time.
        auto later = [&](Epoch epoch) {
            if (epoch.sharing() == many_blocks) epoch = epoch.with_time(0);
            uint32_t serial = epoch.serial();
            return serial < first ? epoch
                                  : Epoch(serial - first + the_launch.first_serial, epoch.time(), epoch.thread())
                                        .with_sharing(epoch.sharing());
        };
        for (unsigned i = 0; !why && i < granules; ++i) {
            CHECK(x.cell(i).write == later(after[i].write));
            Epoch reads = x.cell(i).reads;
            CHECK((reads.sharing() == many_blocks ? reads.with_time(0) : reads) == later(after[i].reads));
            CHECK_EQUAL(x.cell(i).write_site, after[i].write_site);
        }
        keep_written(*grid.thread(0, 0).worker);
    }
    CHECK(conflicts > 100 && went_on > 100);
}

CASE(lock_held_at_the_end_of_a_launch_is_released) {
    for (auto ends : {keep_written, undo_written}) {
        Grid grid(1, 32);
        WorkerState& worker = *grid.thread(0, 0).worker;
        SpinLock lock;
        lock.lock();
        worker.held = &lock;
        ends(worker);
        CHECK(!worker.held);
        bool held;  // read the lock's memory, because locking it again would deadlock
        static_assert(sizeof held == sizeof lock, "a lock is whether it is held");
        memcpy(&held, &lock, sizeof held);
        CHECK(!held);
    }
}

CASE(overwritten_cells_and_memory_can_be_restored) {
    Tensor x;
    Grid grid(2, 64);
    WorkerState& worker = *grid.thread(0, 0).worker;
    const Epoch before = x.cell(15).write;
    x.cell(15).write_site = 9;
    for (unsigned i = 0; i < 64; ++i) bytes[i] = static_cast<char>(i);
    for (const Step& one : {Step{0, 0, 15, true}, Step{1, 0, 2, true}, Step{1, 0, 2, true}})
        CHECK(!rolled_back(grid, x, one));
    CHECK_EQUAL(worker.overwritten.size(), 2);
    memset(bytes, 77, sizeof bytes);
    undo_written(worker);
    CHECK(worker.overwritten.empty() && x.cell(15).write == before && x.cell(15).write_site == 9);
    for (unsigned i = 0; i < 64; ++i) {
        bool undone = i / 4 == 2 || i / 4 == 15;
        CHECK_EQUAL(bytes[i], undone && i < 63 ? i : 77);  // byte 63 is not part of the tensor
    }
    CHECK(!rolled_back(grid, x, {0, 0, 15, true}));
    keep_written(worker);
    CHECK(worker.overwritten.empty() && x.cell(15).write == grid.thread(0, 0).epoch);
}

CASE(finding_with_several_workers_rolls_the_launch_back) {
    Grid grid(1, 32);
    sim::Grid launch = of_two_workers();
    ThreadState& thread = grid.thread(0, 0);
    Finding made = finding_at(FindingKind::out_of_bounds, thread, bytes);
    CHECK(made.count == 1 && made.launch == grid.launch().id && made.kernel == the_launch.kernel);
    CHECK(made.side.has_thread && made.side.serial == thread.block->serial && made.side.address == bytes);
    unit::as_thread(thread, [&] { add_finding(made); }, launch);
    CHECK(launch.rolled_back && finding_count() == 0);
}
