#include "checks/synchronization/parallel_blocks.h"

#include "checks/core/access.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

constexpr const char* conflict = "its blocks access the same memory, and some write to it";
constexpr size_t max_overwritten = size_t(1) << 24;  // per worker; half a gigabyte of records

// A lock for the cells of each 64 bytes of memory. An access needs only one lock, because it is aligned.
struct alignas(64) Stripe {
    SpinLock lock;
};
Stripe stripes[1024];

void release(WorkerState& worker) {
    if (worker.held) worker.held->unlock();
    worker.held = nullptr;
}

// Holds the lock of an access from the first call of lock() to the end of the access.
class CellsLock {
  public:
    CellsLock(WorkerState& worker, uintptr_t address) : worker_(worker), address_(address) {}
    ~CellsLock() { release(worker_); }
    CellsLock(const CellsLock&) = delete;
    CellsLock& operator=(const CellsLock&) = delete;
    void lock() {
        if (worker_.held) return;
        worker_.held = &stripes[(address_ >> 6) % (sizeof stripes / sizeof *stripes)].lock;
        worker_.held->lock();
    }

  private:
    WorkerState& worker_;
    uintptr_t address_;
};

// Returns the epoch, which another worker may write at the same time.
Epoch seen(const Epoch& epoch) {
    Epoch value;
    __atomic_load(&epoch, &value, __ATOMIC_RELAXED);
    return value;
}

bool of_this_launch(Epoch epoch) { return epoch.serial() >= the_launch.first_serial; }

void let_others_read(ShadowCell& cell) {
    if (cell.reads.sharing() == many_blocks) return;
    cell.second.set_before_others(cell.reads.sharing());
    cell.reads = cell.reads.with_sharing(many_blocks);
}

bool written_by(const ThreadState& thread, const ShadowCell& cell) {
    return seen(cell.write).serial() == thread.block->serial;
}

// Returns whether this read changes nothing: the cell already records such a read by this block, or a read by an
// earlier block.
bool read_before(const ThreadState& thread, const ShadowCell& cell, const AccessSite& site) {
    Epoch reads = seen(cell.reads);
    if (!thread.floors[site.window].contains(seen(cell.write)) || !of_this_launch(reads)) return false;
    if (reads.sharing() == many_blocks) return reads.serial() < thread.block->serial;
    return reads == thread.epoch || has_reader(thread, site, reads);
}

void read_first(ThreadState& thread, ShadowCell& cell, const AccessSite& site) {
    uint32_t own = thread.block->serial;
    if (of_this_launch(cell.write)) in_block_order_unlocked(conflict);
    Epoch reads = cell.reads;
    bool others = of_this_launch(reads) && (reads.sharing() == many_blocks || reads.serial() != own);
    if (!others) {
        read_cell(thread, cell, site);
    } else if (reads.serial() < own) {
        if (!thread.floors[site.window].contains(cell.write)) read_conflict(thread, cell, site);
        let_others_read(cell);
    } else {
        cell.reads = reads.serial() == own ? reads.with_sharing(cell.second.before_others()) : never;
        read_cell(thread, cell, site);
        let_others_read(cell);
    }
}

// Called before the first write of a block to a cell. The block then owns the cell. If another block has used the cell,
// the launch is rolled back.
void prepare_to_write(ThreadState& thread, ShadowCell& cell, const AccessSite& site) {
    bool read_by_others = of_this_launch(cell.reads) &&
                          (cell.reads.sharing() == many_blocks || cell.reads.serial() != thread.block->serial);
    if (of_this_launch(cell.write) || read_by_others) in_block_order_unlocked(conflict);
    Growable<Overwritten>& overwritten = thread.worker->overwritten;
    if (overwritten.size() == max_overwritten) in_block_order_unlocked("its blocks write too much to be undone");
    size_t offset = static_cast<size_t>(&cell - site.cells) << site.shift, rest = site.region->bytes - offset;
    size_t granule = size_t(1) << site.shift;
    auto bytes = static_cast<uint8_t>(rest < granule ? rest : granule);
    Overwritten before = {&cell, cell.write, site.base + offset, {}, cell.write_site, bytes};
    memcpy(&before.data, reinterpret_cast<const void*>(before.address), before.bytes);
    overwritten.push(before);
}

struct Cells {
    ShadowCell* first;
    ShadowCell* last;
    Cells(const AccessSite& site, uintptr_t address, unsigned size_log2)
        : first(site.cells + ((address - site.base) >> site.shift)),
          last(site.cells + ((address + (1u << size_log2) - 1 - site.base) >> site.shift)) {}
    ShadowCell* begin() const { return first; }
    ShadowCell* end() const { return last + 1; }
};

}  // namespace

void in_block_order_unlocked(const char* what) {
    Thread* thread = current_thread;
    ThreadState* state = thread ? state_of(*thread) : nullptr;
    if (state) release(*state->worker);
    in_block_order(what);
}

void read_cells_of_several(ThreadState& thread, AccessSite& site, uintptr_t address, unsigned size_log2) {
    CellsLock lock(*thread.worker, address);
    for (ShadowCell& cell : Cells(site, address, size_log2)) {
        if (written_by(thread, cell)) {
            read_cell(thread, cell, site);
        } else if (!read_before(thread, cell, site)) {
            lock.lock();
            read_first(thread, cell, site);
        }
    }
}

void write_cells_of_several(ThreadState& thread, AccessSite& site, uintptr_t address, unsigned size_log2) {
    CellsLock lock(*thread.worker, address);
    for (ShadowCell& cell : Cells(site, address, size_log2)) {
        if (!written_by(thread, cell)) {
            lock.lock();
            prepare_to_write(thread, cell, site);
        }
        write_cell(thread, cell, site, address);
    }
}

void keep_written(WorkerState& worker) {
    release(worker);  // a launch that faulted may have ended while this worker held a lock
    worker.overwritten.clear();
}

void undo_written(WorkerState& worker) {
    release(worker);
    for (const Overwritten& before : worker.overwritten) {
        memcpy(reinterpret_cast<void*>(before.address), &before.data, before.bytes);
        before.cell->write = before.write;
        before.cell->write_site = before.write_site;
    }
    worker.overwritten.clear();
}

}  // namespace sim::checks
