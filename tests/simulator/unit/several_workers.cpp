// Blocks on several workers: cells as if they had run one after another, or the launch is taken back.
#include "checks/several_workers.h"

#include "checks/access.h"
#include "as_thread.h"
#include "grid.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

char bytes[64];
constexpr unsigned granules = 4;

// A tensor that ends in the midst of a granule, one site that reads and one that writes it.
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

struct Step {
    unsigned block, thread, granule;
    bool write;
};

sim::Grid of_two_workers() {
    sim::Grid grid = {};
    grid.workers = 2;
    grid.helped = grid.checks_enabled = true;
    return grid;
}

// False when the launch is taken back.
bool step(Grid& grid, Tensor& x, const Step& step) {
    ThreadState& thread = grid.thread(step.block, step.thread);
    sim::Grid launch = of_two_workers();
    uintptr_t address = reinterpret_cast<uintptr_t>(bytes) + 4 * step.granule;
    unit::as_thread(
        thread,
        [&] {
            if (step.write)
                write_cells_of_several(thread, x.site(true), address, 2);
            else
                read_cells_of_several(thread, x.site(false), address, 2);
        },
        launch);
    thread.pending = false;
    CHECK(!thread.worker->held);
    CHECK(launch.taken_back == launch.stop.is_raised());
    return !launch.taken_back;
}

}  // namespace

CASE(cells_are_as_if_blocks_had_run_one_after_another) {
    unit::Random random(9);
    unsigned taken_back = 0, went_on = 0;
    for (unsigned turn = 0; turn < 4000; ++turn) {
        // Each block has cells that it prefers, so that not all runs end in a conflict.
        Step steps[12];
        bool conflict = false;
        const unsigned count = 2 + random.below(11);
        for (unsigned i = 0; i < count; ++i) {
            unsigned block = random.below(3);
            bool write = random.below(turn % 3 + 2) == 0;
            unsigned granule = write && turn % 8 ? block : random.below(granules);
            steps[i] = {block, random.below(2) * 32 + random.below(2), granule, write};
            for (unsigned j = 0; j < i; ++j)
                conflict |= steps[j].block != block && steps[j].granule == granule && (write || steps[j].write);
        }
        Epoch write[granules], reads[granules];
        uint16_t write_site[granules];
        size_t findings = 0;
        uint32_t first = 0;
        {
            Tensor x;
            Grid grid(3, 64);
            first = the_launch.first_serial;
            for (unsigned block = 0; block < 3; ++block)
                for (unsigned i = 0; i < count; ++i) {
                    const Step& one = steps[i];
                    if (one.block != block) continue;
                    ThreadState& thread = grid.thread(block, one.thread);
                    uintptr_t address = reinterpret_cast<uintptr_t>(bytes) + 4 * one.granule;
                    if (one.write)
                        write_cell(thread, x.cell(one.granule), x.site(true), address);
                    else
                        read_cell(thread, x.cell(one.granule), x.site(false));
                    thread.pending = false;
                }
            findings = finding_count();
            for (unsigned i = 0; i < granules; ++i) {
                write[i] = x.cell(i).write, reads[i] = x.cell(i).reads;
                write_site[i] = x.cell(i).write_site;
            }
        }
        if (findings && !conflict) continue;  // those of one block are for other tests
        Tensor x;
        Grid grid(3, 64);
        bool goes_on = true;
        for (unsigned i = 0; i < count; ++i) goes_on = goes_on && step(grid, x, steps[i]);
        CHECK_EQUAL(!goes_on, conflict);
        ++(goes_on ? went_on : taken_back);
        auto later = [&](Epoch epoch) {  // as in this launch
            uint32_t serial = epoch.serial();
            return serial < first ? epoch
                                  : Epoch(serial - first + the_launch.first_serial, epoch.time(), epoch.thread())
                                        .with_sharing(epoch.sharing());
        };
        for (unsigned i = 0; goes_on && i < granules; ++i) {
            CHECK(x.cell(i).write == later(write[i]) && x.cell(i).reads == later(reads[i]));
            CHECK(write[i].serial() == 0 || x.cell(i).write_site == write_site[i]);
        }
        keep_written(*grid.thread(0, 0).worker);
    }
    CHECK(taken_back > 100 && went_on > 100);
}

CASE(what_was_written_can_be_undone) {
    Tensor x;
    Grid grid(2, 64);
    WorkerState& worker = *grid.thread(0, 0).worker;
    const Epoch before = x.cell(15).write;
    x.cell(15).write_site = 9;
    for (unsigned i = 0; i < 64; ++i) bytes[i] = static_cast<char>(i);
    CHECK(step(grid, x, {0, 0, 15, true}) && step(grid, x, {1, 0, 2, true}) && step(grid, x, {1, 0, 2, true}));
    CHECK_EQUAL(worker.overwritten.size(), 2);
    memset(bytes, 77, sizeof bytes);
    undo_written(worker);
    CHECK(worker.overwritten.empty() && x.cell(15).write == before && x.cell(15).write_site == 9);
    for (unsigned i = 0; i < 64; ++i) {
        bool undone = i / 4 == 2 || i / 4 == 15;
        CHECK_EQUAL(bytes[i], undone && i < 63 ? i : 77);  // the last one is no part of the tensor
    }
    CHECK(step(grid, x, {0, 0, 15, true}));
    keep_written(worker);
    CHECK(worker.overwritten.empty() && x.cell(15).write == grid.thread(0, 0).epoch);
}

CASE(a_finding_takes_a_launch_of_several_workers_back) {
    Grid grid(1, 32);
    sim::Grid launch = of_two_workers();
    ThreadState& thread = grid.thread(0, 0);
    Finding made = finding_at(Check::memcheck, "out_of_bounds", thread, bytes);
    CHECK(made.count == 1 && made.launch == grid.launch().id && made.kernel == the_launch.kernel);
    CHECK(made.side.has_thread && made.side.serial == thread.block->serial && made.side.address == bytes);
    unit::as_thread(thread, [&] { add_finding(made); }, launch);
    CHECK(launch.taken_back && finding_count() == 0);
}
