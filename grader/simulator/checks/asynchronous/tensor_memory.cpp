#include "checks/asynchronous/tensor_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "checks/core/access.h"
#include "checks/report/findings.h"
#include "checks/asynchronous/operand_reader.h"
#include "runtime/events.h"
#include "runtime/matrix_descriptor.h"
#include "runtime/tensor_memory.h"

namespace sim::checks {

namespace {

constexpr unsigned lanes_per_cell = 16, lane_groups = tensor_lanes / lanes_per_cell;

enum class Kind : uint8_t { load, store, mma, copy };

const char* name_of(Kind kind) {
    constexpr const char* names[] = {"tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.cp"};
    return names[static_cast<unsigned>(kind)];
}
bool is_transfer(Kind kind) { return kind == Kind::load || kind == Kind::store; }

// An operation on tensor memory. `thread`: lane 0 of the warp, or the thread that issued the MMA.
struct Record {
    Kind kind;
    bool waited;  // for a load or store: the warp has waited for it
    ThreadState* thread;
    uint64_t number;  // number of an MMA or copy
    Epoch done;       // for a load or store: the time at which the warp's wait ended
    const void* code;
};

struct Wait {
    Epoch epoch;  // epoch of the thread that waited; no access has the same time
    const ThreadState* issuer;
    uint64_t number;  // the issuer's operations up to this number were complete
};

// The numbers of the last records that accessed the cell; 0: none.
struct Cell {
    uint32_t written, loaded, used;  // `used`: an MMA read the cell as its A operand
    bool initialized;
};

// State shared by the blocks of a cluster, because CTA pairs work together.
struct Shared {
    unsigned blocks;
    Growable<Record> records;
    Growable<Wait> waits;
};

}  // namespace

struct BlockTensorMemory {
    Shared* shared;
    Cell cells[lane_groups][tensor_columns];
    PieceNotes pieces;                                   // last record that read each piece of shared memory
    Growable<uint32_t> pending[max_warps_per_block][2];  // loads and stores that the warp has not waited for
};

namespace {

BlockTensorMemory& memory_of(BlockState& block) {
    if (block.tensor_memory) return *block.tensor_memory;
    auto* own = block.tensor_memory = new BlockTensorMemory();
    const Cluster& cluster = *block.block->cluster;
    for (unsigned rank = 0; rank < cluster.size && !own->shared; ++rank) {
        const BlockState& other = *state_of(*cluster.blocks[rank]);
        if (&other != &block && other.tensor_memory) own->shared = other.tensor_memory->shared;
    }
    if (!own->shared) {
        own->shared = new Shared();
        own->shared->records.push({});
    }
    ++own->shared->blocks;
    return *own;
}

TensorThread& tensor_thread_of(ThreadState& thread) {
    ThreadExtras& extras = extras_of(thread);
    if (!extras.tensor) extras.tensor = new TensorThread();
    return *extras.tensor;
}

// Returns whether the thread knew of the epoch at its last tcgen05.fence::after_thread_sync.
bool known_at_fence(const ThreadState& thread, Epoch epoch) {
    const TensorThread* own = thread.extras ? thread.extras->tensor : nullptr;
    if (!own || !own->fenced) return false;
    const ProxyFence& fence = own->after;
    uint32_t serial = thread.block->serial;
    if (epoch.serial() == serial) {
        if (epoch.thread() == thread.thread->linear) return epoch.time() <= fence.time;
        if (epoch.time() < fence.barrier_time) return true;
        if (epoch.warp() == thread.warp->warp->index && epoch.time() < fence.warp_time) return true;
    } else if (fence.known && epoch.time() < known_barrier(fence.known, epoch.serial())) {
        return true;
    }
    return covers(fence.known, epoch.serial(), epoch.thread(), epoch.time());
}

enum class Order { fine, unordered, unfinished, fence_after_missing, fence_before_missing };

// Returns whether `accept` is true for a wait that the thread is ordered after, and that an earlier MMA or copy was
// complete for. The latest wait comes first.
template <typename F>
bool any_wait(const ThreadState& thread, const Shared& shared, const Record& before, F accept) {
    for (size_t i = shared.waits.size(); i-- > 0;) {
        const Wait& wait = shared.waits[i];
        bool covers = wait.issuer == before.thread && wait.number >= before.number && ordered(thread, wait.epoch);
        if (covers && accept(wait)) return true;
    }
    return false;
}

Order after_mma(const ThreadState& thread, const Shared& shared, const Record& before) {
    const TensorThread* own = thread.extras ? thread.extras->tensor : nullptr;
    bool own_wait = own && own->issuer == before.thread && before.number <= own->number;
    if (own_wait && known_at_fence(thread, own->waited)) return Order::fine;  // the usual case
    bool complete = false;
    bool fenced = any_wait(thread, shared, before, [&](const Wait& wait) {
        complete = true;
        return known_at_fence(thread, wait.epoch);
    });
    return fenced ? Order::fine : complete ? Order::fence_after_missing : Order::unfinished;
}

Order after_transfer(const ThreadState& thread, const Record& before) {
    const ThreadState* lanes = before.thread;
    bool same_warp = thread.warp == before.thread->warp;
    if (!before.waited) return Order::unfinished;
    if (same_warp) return Order::fine;
    bool comes_after = false, fenced = false;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        Epoch done = before.done.with_thread(before.done.thread() + lane);
        comes_after = comes_after || ordered(thread, done);
        const TensorThread* own = lanes[lane].extras ? lanes[lane].extras->tensor : nullptr;
        if (!own) continue;
        for (uint32_t time : own->before) {
            if (time < before.done.time()) continue;
            Epoch fence = done.with_time(time);
            if (ordered(thread, fence)) {
                fenced = true;
                if (known_at_fence(thread, fence)) return Order::fine;
            }
            break;
        }
    }
    return fenced ? Order::fence_after_missing : comes_after ? Order::fence_before_missing : Order::unordered;
}

// Returns how the thread's current operation is ordered after an earlier one.
Order order(const ThreadState& thread, const Shared& shared, Kind kind, const Record& before) {
    if (is_transfer(before.kind)) return after_transfer(thread, before);
    // The tensor cores execute one thread's operations in order.
    if (!is_transfer(kind) && before.thread == &thread) return Order::fine;
    return after_mma(thread, shared, before);
}

// Decides whether the current operation is ordered after an earlier one. The results are cached, because most cells of
// an operation have the same few predecessors.
class Orders {
  public:
    Orders(const ThreadState& thread, const Shared& shared, Kind kind)
        : thread_(thread), shared_(shared), kind_(kind) {}

    Order of(uint32_t record) {
        uint32_t& kept = kept_.at(record);
        if (!kept) kept = 1 + static_cast<uint32_t>(order(thread_, shared_, kind_, shared_.records[record]));
        return static_cast<Order>(kept - 1);
    }

  private:
    const ThreadState& thread_;
    const Shared& shared_;
    Kind kind_;
    HashMap<uint32_t> kept_;  // record -> order, plus 1
};

// Checks the cells of one operation.
class Checker {
  public:
    Checker(BlockState& block, ThreadState& thread, Kind kind, const void* code, uint64_t number)
        : thread_(thread), shared_(*memory_of(block).shared), kind_(kind), code_(code), orders_(thread, shared_, kind) {
        id_ = static_cast<uint32_t>(shared_.records.size());
        shared_.records.push({kind, false, &thread, number, never, code});
    }

    uint32_t id() const { return id_; }

    void read(BlockState& block, const events::TensorRange& range) {
        each(block, range, [&](Cell& cell, unsigned lane, unsigned column) {
            if (!cell.initialized) uninitialized(lane, column);
            follow(cell.written, lane, column);
            (is_transfer(kind_) ? cell.loaded : cell.used) = id_;
        });
    }
    // `adds`: the MMA accumulates, so it also reads the previous contents.
    void write(BlockState& block, const events::TensorRange& range, bool adds) {
        each(block, range, [&](Cell& cell, unsigned lane, unsigned column) {
            if (adds && !cell.initialized) uninitialized(lane, column);
            follow(cell.written, lane, column);
            follow(cell.loaded, lane, column);
            follow(cell.used, lane, column);
            cell = {id_, 0, 0, true};
        });
    }

  private:
    template <typename F>
    void each(BlockState& block, const events::TensorRange& range, F visit) {
        BlockTensorMemory& memory = memory_of(block);
        for (unsigned lane = range.lane; lane < range.lane + range.lanes; lane += lanes_per_cell)
            for (unsigned c = range.column; c < range.column + range.columns && c < tensor_columns; ++c)
                visit(memory.cells[lane / lanes_per_cell][c], lane, c);
    }

    void uninitialized(unsigned lane, unsigned column) {
        if (reported_uninitialized_) return;
        reported_uninitialized_ = true;
        report(FindingKind::tensor_memory_uninitialized, nullptr, lane, column);
    }

    void follow(uint32_t before, unsigned lane, unsigned column) {
        if (!before || before == fine_ || before == reported_) return;
        const Record& record = shared_.records[before];
        Order order = orders_.of(before);
        if (order == Order::fine) {
            fine_ = before;
            return;
        }
        FindingKind kind = order == Order::unordered              ? FindingKind::tensor_memory_race
                           : order == Order::fence_after_missing  ? FindingKind::missing_tensor_fence_after
                           : order == Order::fence_before_missing ? FindingKind::missing_tensor_fence_before
                           : is_transfer(record.kind)             ? FindingKind::tensor_transfer_not_awaited
                                                                  : FindingKind::tensor_product_not_awaited;
        reported_ = before;
        report(kind, &record, lane, column);
    }

    void report(FindingKind kind, const Record* before, unsigned lane, unsigned column) {
        Finding finding = finding_at(kind, thread_, code_);
        finding.payload = TensorCell{lane, column, name_of(kind_), before ? name_of(before->kind) : ""};
        if (before) finding.other.address = before->code;
        add_finding(finding);
    }

    ThreadState& thread_;
    Shared& shared_;
    Kind kind_;
    const void* code_;
    Orders orders_;
    uint32_t id_, fine_ = 0, reported_ = 0;
    bool reported_uninitialized_ = false;
};

// An mma reads the scale factors of each 32 rows of A, or columns of B, in the lanes of all four warps.
void read_scales(Checker& checker, BlockState& block, uint32_t address, unsigned rows) {
    for (unsigned first = 0; first < rows; first += 32) {
        unsigned lanes = rows - first > lanes_per_cell ? 32 : lanes_per_cell;
        for (unsigned lane = 0; lane < tensor_lanes; lane += 32)
            checker.read(block, {lane, lanes, (address & 0xffff) + first / 32, 1});
    }
}

// Reads an operand in a block's shared memory. `record` is the number of the operation's record.
void read_shared(ThreadState& reader, BlockState& owner, uint32_t record, uint64_t descriptor, const void* code,
                 bool mn_major, unsigned groups, unsigned along_k) {
    MatrixDescriptor matrix = MatrixDescriptor::of_tcgen05(descriptor);
    OperandReader pieces(reader, owner, memory_of(owner).pieces, record, 0, matrix.line, code);
    for (unsigned group = 0; group < groups; ++group)
        for (unsigned k = 0; k < along_k; ++k)
            for (unsigned i = 0; i < 8; ++i)
                pieces.read(
                    reinterpret_cast<uintptr_t>(shared_address_of(*owner.block, matrix.piece(mn_major, group, k, i))));
}

}  // namespace

void note_awaited(ThreadState& thread, const ThreadState& issuer, uint64_t number) {
    TensorThread& own = tensor_thread_of(thread);
    if (own.issuer == &issuer && own.number >= number) return;
    own.issuer = &issuer;
    own.number = number;
    set_time(thread, ++thread.block->time);
    own.waited = thread.epoch;
    memory_of(*thread.block).shared->waits.push({thread.epoch, &issuer, number});
}

bool overtakes_tensor_operation(const ThreadState& thread, BlockState& owner, uintptr_t address, Epoch* reader) {
    if (!owner.tensor_memory || !owner.tensor_memory->pieces) return false;
    const Shared& shared = *owner.tensor_memory->shared;
    uint32_t id = owner.tensor_memory->pieces[(address - owner.shared->base) >> piece_log2];
    if (!id) return false;
    const Record& record = shared.records[id];
    const TensorThread* own = thread.extras ? thread.extras->tensor : nullptr;
    if (own && own->issuer == record.thread && record.number <= own->number) return false;  // the usual case
    if (any_wait(thread, shared, record, [](const Wait&) { return true; })) return false;
    *reader = record.thread->epoch;
    return true;
}

void tensor_memory_at_exit(Block& block) {
    const TensorMemory* memory = block.tensor_memory;
    if (!memory) return;
    if (memory->oldest && memory->group == 1) {
        ThreadState& issuer = *state_of(*memory->oldest->thread);
        Finding finding = finding_at(FindingKind::tensor_product_at_exit, issuer, memory->oldest->address);
        finding.payload = TensorInstruction{name_of(memory->oldest->copy_bits ? Kind::copy : Kind::mma)};
        add_finding(finding);
    }
    unsigned held = 0;
    for (uint16_t allocation : memory->allocation) held += allocation != 0;
    if (!held) return;
    Finding finding =
        finding_at(FindingKind::tensor_memory_not_freed, *state_of(*memory->allocated_by), memory->allocated_at);
    finding.payload = TensorColumns{held};
    add_finding(finding);
}

void forget_tensor_memory(BlockState& block) {
    BlockTensorMemory* memory = block.tensor_memory;
    if (!memory) return;
    if (--memory->shared->blocks == 0) delete memory->shared;
    free(memory->pieces);
    delete memory;
    block.tensor_memory = nullptr;
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

void tensor_allocated(Thread& thread, const void* address_goes_to, unsigned first, unsigned count) {
    ThreadState& state = *state_of(thread);
    BlockTensorMemory& memory = memory_of(*state.block);
    for (auto& lanes : memory.cells)
        for (unsigned c = first; c < first + count; ++c) lanes[c] = {};
    if (state.pending) settle(state, 0, nullptr);
    uintptr_t address = reinterpret_cast<uintptr_t>(address_goes_to);
    AccessSite* site = prepare(state, state.worker->sites.find(thread.call_address), address, Access::write, 2);
    if (!site || !site->cells) return;
    access_cells<true>(state, *site, address, 2);
}

void tensor_released(Thread& thread, unsigned first, unsigned count) {
    ThreadState& state = *state_of(thread);
    BlockTensorMemory& memory = memory_of(*state.block);
    const Shared& shared = *memory.shared;
    // tcgen05.dealloc is not an access, so it needs no fence. But no operation on the columns may be pending.
    Orders orders(state, shared, Kind::load);
    for (auto& lanes : memory.cells) {
        for (unsigned c = first; c < first + count; ++c) {
            for (uint32_t before : {lanes[c].written, lanes[c].loaded, lanes[c].used}) {
                if (!before) continue;
                Order found = orders.of(before);
                if (found != Order::unordered && found != Order::unfinished) continue;
                Finding finding = finding_at(FindingKind::tensor_memory_freed_in_use, state, thread.call_address);
                finding.payload = TensorColumn{c, name_of(shared.records[before].kind)};
                finding.other.address = shared.records[before].code;
                add_finding(finding);
                return;
            }
        }
    }
}

void tensor_transfer(Warp& warp, const TensorRange& range, bool stores, const void* address) {
    BlockState& block = *state_of(*warp.block);
    ThreadState& first = *state_of(warp.threads[0]);
    Checker checker(block, first, stores ? Kind::store : Kind::load, address, 0);
    if (stores)
        checker.write(block, range, false);
    else
        checker.read(block, range);
    memory_of(block).pending[warp.index][stores].push(checker.id());
}

void tensor_waited(Warp& warp, bool stores) {
    BlockState& block = *state_of(*warp.block);
    BlockTensorMemory& memory = memory_of(block);
    ThreadState* lanes = state_of(warp.threads[0]);
    uint32_t time = ++block.time;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        if (lanes[lane].pending) settle(lanes[lane], 0, nullptr);
        set_time(lanes[lane], time);
    }
    for (uint32_t id : memory.pending[warp.index][stores]) {
        Record& record = memory.shared->records[id];
        record.waited = true;
        record.done = lanes[0].epoch;
    }
    memory.pending[warp.index][stores].truncate(0);
}

void tensor_operation(Thread& thread, const TensorOperation& operation) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    const Tcgen05Mma& mma = operation.mma;
    const MmaShape& shape = operation.shape;
    const void* code = thread.call_address;
    Kind kind = operation.copy_bits ? Kind::copy : Kind::mma;
    Checker checker(*state.block, state, kind, code, operation.number);
    unsigned blocks = mma.pair ? 2 : 1, pieces = 0;
    unsigned first = mma.d & 0xffff;
    for (unsigned which = 0; which < blocks; ++which) {
        BlockState& block = which ? *state_of(neighbor_of(*thread.block)) : *state.block;
        if (operation.copy_bits) {
            read_shared(state, block, checker.id(), mma.a, code, false, (operation.copy_warpx4 ? 32 : tensor_lanes) / 8,
                        operation.copy_bits / 128);
            checker.write(block, {0, tensor_lanes, first, operation.copy_bits / 32}, false);
            continue;
        }
        if (mma.a_in_tensor_memory) {
            checker.read(block, {0, tensor_lanes, static_cast<unsigned>(mma.a & 0xffff), 8});
        } else {
            read_shared(state, block, checker.id(), mma.a, code, shape.a_mn_major, shape.m / blocks / 8, 2);
            pieces += 2 * shape.m / blocks;
        }
        read_shared(state, block, checker.id(), mma.b, code, shape.b_mn_major, shape.n / blocks / 8, 2);
        pieces += 2 * shape.n / blocks;
        if (mma.scales) {
            read_scales(checker, block, mma.scale_a, shape.m);
            read_scales(checker, block, mma.scale_b, shape.n);
        }
        if (shape.m == 64) {
            for (unsigned lane = 0; lane < tensor_lanes; lane += 32)
                checker.write(block, {lane, lanes_per_cell, first, shape.n}, mma.adds);
        } else {
            unsigned columns = shape.m == 128 && mma.pair ? shape.n / 2 : shape.n;
            checker.write(block, {0, tensor_lanes, first, columns}, mma.adds);
        }
    }
    if (operation.copy_bits) return;
    Locked locked(the_launch.lock);
    uint64_t address = reinterpret_cast<uint64_t>(code);
    the_launch.tensor_operations_at.at(address) += 2ull * shape.m * shape.n * depth_of(mma.kind);
    the_launch.operand_bytes_at.at(address) += uint64_t(pieces) << piece_log2;
}

void tensor_fence(Thread& thread, bool after) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    TensorThread& own = tensor_thread_of(state);
    if (!after) {
        own.before.push(state.time());
        return;
    }
    own.fenced = true;
    own.after = {state.time(), state.warp->sync_time, state.barrier_time, state.extras->known};
}

}  // namespace sim::events
