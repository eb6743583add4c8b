#include "checks/asynchronous/wgmma.h"

#include "checks/core/access.h"
#include "checks/report/findings.h"
#include "checks/asynchronous/operand_reader.h"
#include "checks/asynchronous/tensor_memory.h"
#include "runtime/events.h"
#include "runtime/matrix_descriptor.h"
#include "sim/shared.h"

namespace sim::checks {

namespace {

constexpr unsigned max_warpgroups = max_warps_per_block / warps_per_group;

struct Wait {
    uint64_t number;  // all wgmma up to this one were complete
    Epoch epoch;      // epoch of the first lane; the others have the same time
};

// The number of the last wgmma that read a piece, and a mask of the warps for which it did.
using LastRead = uint32_t;
constexpr unsigned number_bits = 28;
constexpr LastRead number_mask = (1u << number_bits) - 1;

}  // namespace

struct BlockWgmma {
    LastRead* pieces[max_warpgroups];
    Growable<Wait> waits[max_warps_per_block];
    // Cache of overtakes_wgmma, per warp: its wgmma reads numbered up to `number` are ordered before the write with the
    // epoch `writer`.
    struct {
        Epoch writer;
        uint64_t number;
    } ordered[max_warps_per_block];
};

namespace {

BlockWgmma& wgmma_of(BlockState& block) {
    if (!block.wgmma) block.wgmma = new BlockWgmma();
    return *block.wgmma;
}

WatchedRegisters& registers_of(ThreadState& thread) {
    ThreadExtras& extras = extras_of(thread);
    if (!extras.registers) {
        extras.registers = new WatchedRegisters();
        thread.watches = true;
    }
    return *extras.registers;
}

ThreadState* first_lane(const WarpState& warp) { return warp.block->threads + warp.warp->index * lanes_per_warp; }

Finding finding_about(FindingKind kind, const ThreadState& thread, const void* code, const void* other) {
    Finding finding = finding_at(kind, thread, code);
    finding.other.address = other;
    return finding;
}

// Calls visit(begin, end) for each piece of memory that the variables occupy.
template <typename F>
void each_run(uint32_t* const* variables, unsigned count, F visit) {
    for (unsigned i = 0, first = 0; i < count; ++i) {
        if (i + 1 < count && variables[i + 1] == variables[i] + 1) continue;
        visit(reinterpret_cast<uintptr_t>(variables[first]), reinterpret_cast<uintptr_t>(variables[i] + 1));
        first = i + 1;
    }
}

void remember_values(AccumulatorRun& run) {
    size_t bytes = run.end - run.begin;
    if (!run.values) run.values = static_cast<uint32_t*>(malloc(bytes));
    if (!run.values) no_memory();
    memcpy(run.values, reinterpret_cast<const void*>(run.begin), bytes);
}

bool have_changed(const AccumulatorRun& run) {
    return run.values && memcmp(run.values, reinterpret_cast<const void*>(run.begin), run.end - run.begin) != 0;
}

void take(ThreadState& thread, WatchedRegisters& registers, uintptr_t begin, uintptr_t end) {
    const void* code = thread.thread->call_address;
    AccumulatorRun run = {begin, end, nullptr, code, nullptr, Access::read, true, false};
    for (size_t i = 0; i < registers.runs.size();) {
        AccumulatorRun& known = registers.runs[i];
        if (known.end <= begin || end <= known.begin) {
            ++i;
            continue;
        }
        if (!known.taken && (known.touched || have_changed(known))) {
            Finding finding = finding_about(FindingKind::missing_wgmma_fence, thread, code, known.touched);
            finding.other.access = static_cast<uint8_t>(known.touch);
            add_finding(finding);
        }
        if (known.begin == begin && known.end == end) {
            run.values = known.values;
            known = run;
            return;
        }
        free(known.values);
        registers.runs.remove_unordered(i);
    }
    registers.runs.push(run);
}

// Reads core matrices of an operand from `first` on, along M or N. `which` are the warps that read them: the first lane
// of each represents all.
void read_operand(Warp* warps, unsigned which, const events::WgmmaIssue& issue, const MatrixDescriptor& descriptor,
                  bool mn_major, unsigned first, unsigned groups) {
    BlockState& block = *state_of(*warps->block);
    auto lane_of = [&](unsigned w) -> ThreadState& { return *first_lane(*state_of(warps[w])); };
    LastRead note = static_cast<LastRead>(issue.number & number_mask) | which << number_bits;
    OperandReader reader(lane_of(static_cast<unsigned>(__builtin_ctz(which))), block,
                         wgmma_of(block).pieces[warps->index / warps_per_group], note, ~number_mask, descriptor.line,
                         issue.address);
    for (unsigned rest = which & (which - 1); rest; rest &= rest - 1)
        reader.add_reader(lane_of(static_cast<unsigned>(__builtin_ctz(rest))));
    for (unsigned matrix = 0; matrix < 2 * groups; ++matrix) {
        for (unsigned i = 0; i < 8; ++i) {
            uint32_t offset = descriptor.piece(mn_major, first + matrix / 2, matrix % 2, i);
            reader.read(reinterpret_cast<uintptr_t>(own_shared_address(offset)));
        }
    }
}

// Returns whether the thread is ordered after a wait for the wgmma by at least one lane of the warp.
bool comes_after(const ThreadState& thread, BlockWgmma& block_wgmma, unsigned warp, uint64_t number) {
    auto& known = block_wgmma.ordered[warp];
    if (known.writer == thread.epoch && number <= known.number) return true;
    const Growable<Wait>& waits = block_wgmma.waits[warp];
    size_t low = partition_point(waits.size(), [&](size_t i) { return waits[i].number < number; });
    if (low == waits.size()) return false;
    const Wait& wait = waits[low];
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        if (!ordered(thread, wait.epoch.with_thread(warp * lanes_per_warp + lane))) continue;
        known = {thread.epoch, wait.number};
        return true;
    }
    return false;
}

}  // namespace

void free_registers(WatchedRegisters* registers) {
    if (!registers) return;
    for (AccumulatorRun& run : registers->runs) free(run.values);
    delete registers;
}

void local_access(ThreadState& thread, uintptr_t address, size_t bytes, Access access, const void* code) {
    for (AccumulatorRun& run : thread.extras->registers->runs) {
        if (address + bytes <= run.begin || run.end <= address) continue;
        if (!run.taken) {
            if (!run.touched) run.touched = code, run.touch = access;
            continue;
        }
        FindingKind kind = run.loads ? FindingKind::tensor_load_not_awaited : FindingKind::accumulator_not_awaited;
        Finding finding = finding_about(kind, thread, code, run.wgmma);
        finding.side.access = static_cast<uint8_t>(access);
        finding.bytes = static_cast<uint32_t>(bytes);
        add_finding(finding);
    }
}

bool overtakes_wgmma(const ThreadState& thread, uintptr_t address, Epoch* reader) {
    BlockState* owner =
        owner_of_shared(*thread.block, address);  // the writer may be a copy by another block of the cluster
    if (!owner) return false;
    if (overtakes_tensor_operation(thread, *owner, address, reader)) return true;
    if (!owner->wgmma) return false;
    BlockState& block = *owner;
    size_t piece = (address - block.shared->base) >> piece_log2;
    for (unsigned group = 0; group < max_warpgroups; ++group) {
        if (!block.wgmma->pieces[group]) continue;
        LastRead last = block.wgmma->pieces[group][piece];
        unsigned first = group * warps_per_group, warps = last >> number_bits;
        // A wgmma group belongs to the whole warpgroup: when the wait of one warp ends, the wgmma is complete for all
        // warps.
        bool complete = !warps;
        for (unsigned w = 0; w < warps_per_group && !complete; ++w)
            complete = comes_after(thread, *block.wgmma, first + w, last & number_mask);
        if (complete) continue;
        *reader = block.threads[(first + static_cast<unsigned>(__builtin_ctz(warps))) * lanes_per_warp].epoch;
        return true;
    }
    return false;
}

void forget_wgmma(BlockState& block) {
    if (!block.wgmma) return;
    for (LastRead* pieces : block.wgmma->pieces) free(pieces);
    delete block.wgmma;
    block.wgmma = nullptr;
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

void accumulators_pending(Thread& thread, uint32_t* const* variables, unsigned count) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    WatchedRegisters& registers = registers_of(state);
    if (!registers.fenced) {
        registers.fenced = true;  // report a missing fence once
        add_finding(finding_at(FindingKind::missing_wgmma_fence, state, thread.call_address));
    }
    each_run(variables, count, [&](uintptr_t begin, uintptr_t end) { take(state, registers, begin, end); });
}

void accumulators_ready(Thread& thread, uint32_t* const* variables, unsigned count) {
    WatchedRegisters& registers = registers_of(*state_of(thread));
    each_run(variables, count, [&](uintptr_t begin, uintptr_t end) {
        for (AccumulatorRun& run : registers.runs)
            if (run.begin < end && begin < run.end) {
                run.taken = false;
                remember_values(run);
            }
    });
}

void tensor_registers_pending(Thread& thread, uint32_t* const* variables, unsigned count) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    WatchedRegisters& registers = registers_of(state);
    state.watches = true;
    each_run(variables, count, [&](uintptr_t begin, uintptr_t end) {
        registers.runs.push({begin, end, nullptr, thread.call_address, nullptr, Access::read, true, true});
    });
}

void tensor_registers_ready(Thread& thread, uint32_t* const* variables, unsigned count) {
    ThreadState& state = *state_of(thread);
    WatchedRegisters& registers = registers_of(state);
    each_run(variables, count, [&](uintptr_t begin, uintptr_t end) {
        for (size_t i = registers.runs.size(); i-- > 0;)
            if (registers.runs[i].loads && registers.runs[i].begin < end && begin < registers.runs[i].end)
                registers.runs.remove_unordered(i);
    });
    state.watches = !registers.runs.empty();
}

void wgmma_fenced(Warp& warp) {
    ThreadState* lanes = first_lane(*state_of(warp));
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        if (lanes[lane].pending) settle(lanes[lane], 0, nullptr);
        WatchedRegisters& registers = registers_of(lanes[lane]);
        registers.fenced = true;
        for (AccumulatorRun& run : registers.runs) {
            run.touched = nullptr;
            if (!run.taken) remember_values(run);
        }
    }
}

void wgmma_issued(Warp* warps, const WgmmaIssue& issue) {
    become_exact(*state_of(*warps->block));
    const Wgmma& kind = issue.kind;
    unsigned pieces = 2 * kind.n;
    if (!kind.a_in_registers) {
        pieces += 2 * 64;
        for (unsigned w = 0; w < warps_per_group; ++w)
            read_operand(warps, 1u << w, issue, MatrixDescriptor(issue.a), kind.transpose_a, 2 * w, 2);
    }
    read_operand(warps, (1u << warps_per_group) - 1, issue, MatrixDescriptor(issue.b), kind.transpose_b, 0,
                 kind.n / 8u);
    Locked locked(the_launch.lock);
    uint64_t address = reinterpret_cast<uint64_t>(issue.address);
    uint64_t operations = 2ull * 64 * kind.n * kind.k();
    the_launch.tensor_operations_at.at(address) += operations;
    TensorType type = tensor_type(kind);
    if (type != TensorType::count) the_launch.tensor_operations[static_cast<unsigned>(type)] += operations;
    the_launch.operand_bytes_at.at(address) += uint64_t(pieces) << piece_log2;
}

void wgmma_done(Warp& warp, uint64_t number) {
    WarpState& state = *state_of(warp);
    ThreadState* lanes = first_lane(state);
    uint32_t time = ++state.block->time;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        if (lanes[lane].pending) settle(lanes[lane], 0, nullptr);
        set_time(lanes[lane], time);
    }
    wgmma_of(*state.block).waits[warp.index].push({number, lanes[0].epoch});
}

void wgmma_at_exit(Warp& warp, const void* address) {
    add_finding(finding_at(FindingKind::wgmma_at_exit, *first_lane(*state_of(warp)), address));
}

}  // namespace sim::events
