// Tests of wgmma and tcgen05.ld: when threads may access accumulators and operands.
#include "checks/asynchronous/wgmma.h"

#include "checks/core/access.h"
#include "runtime/events.h"
#include "sim/shared.h"

#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using namespace sim::events;
using unit::Grid;

namespace {

const char code[16] = {};  // addresses in it stand for instructions of a kernel

// A warpgroup, and sixteen registers of one of its threads.
struct Registers {
    Registers(bool fenced = true) : grid(1, 128), thread(grid.thread(0, 37)) {
        if (fenced) wgmma_fenced(grid.warp(0, 1));
    }
    template <typename F>
    void with(F event, unsigned first, unsigned count, const void* place = code) {
        uint32_t* variables[16];
        for (unsigned i = 0; i < count; ++i) variables[i] = d + first + i;
        thread.thread->call_address = place;
        event(*thread.thread, variables, count);
    }
    void take(unsigned first, unsigned count, const void* place = code) {
        with(accumulators_pending, first, count, place);
    }
    void give(unsigned first, unsigned count) { with(accumulators_ready, first, count); }
    void touch(unsigned i, unsigned count = 1, Access access = Access::read, const void* place = code + 1) {
        local_access(thread, reinterpret_cast<uintptr_t>(d + i), 4 * count, access, place);
    }
    // Accesses a register, and returns whether this causes a finding.
    bool watched(unsigned i) {
        sim::checks::forget_findings();
        touch(i);
        return finding_count() > 0;
    }

    Grid grid;
    ThreadState& thread;
    uint32_t d[16] = {};
};

// Two threads write the same shared memory without synchronization, which is a race.
void race(Grid& grid) {
    for (unsigned thread : {0, 37}) {
        on_access<2, true>(grid.thread(0, thread), reinterpret_cast<uintptr_t>(grid.shared(0) + 8192), code + 9);
        ++grid.shared(0)[8192];
    }
    CHECK(grid.thread(0, 37).pending && finding_count() == 0);
}

}  // namespace

// --- registers ---

CASE(first_wgmma_of_a_thread_needs_a_fence) {
    Registers registers(false);
    registers.take(0, 4, code + 2);
    CHECK_FOUND("missing_wgmma_fence");
    CHECK(finding(0).side.address == code + 2 && finding(0).side.thread == 37);
    registers.take(4, 4, code + 2);
    CHECK_EQUAL(finding(0).count, 1);
}

CASE(access_to_accumulators_needs_another_fence) {
    enum { untouched, read, written, changed };
    for (int what : {untouched, read, written, changed}) {
        for (bool fenced : {false, true}) {
            Registers registers;
            registers.take(0, 8);
            registers.give(0, 8);
            if (what == read) registers.touch(1);
            if (what == written) registers.touch(1, 1, Access::write);
            if (what == read || what == written)
                registers.touch(2, 1, Access::atomic, code + 3);  // the finding names the earlier access to register 1
            if (what == changed) registers.d[7] = 1;
            if (fenced) wgmma_fenced(registers.grid.warp(0, 1));
            registers.take(0, 8, code + 2);
            CHECK_FOUND(fenced || what == untouched ? "nothing" : "missing_wgmma_fence");
            if (!finding_count()) continue;
            CHECK(finding(0).side.address == code + 2);
            CHECK(finding(0).other.address == (what == changed ? nullptr : code + 1));
            CHECK_EQUAL(finding(0).other.access, what == written ? Access::write : Access::read);
            registers.take(0, 8, code + 2);
            CHECK_EQUAL(finding(0).count, 1);
        }
    }
}

CASE(accumulators_are_in_use_until_the_wait) {
    Registers registers;
    registers.take(4, 4, code + 2);
    registers.touch(3);
    registers.touch(8, 4);
    registers.touch(0, 4);
    CHECK_FOUND("nothing");
    registers.touch(3, 2, Access::write);
    CHECK_FOUND("accumulator_not_awaited");
    const Finding one = finding(0);
    CHECK(one.count == 1 && one.bytes == 8 && one.side.access == static_cast<uint8_t>(Access::write));
    CHECK(one.side.address == code + 1 && one.other.address == code + 2 && check_of(one.kind) == Check::synccheck);
    for (unsigned i = 4; i < 8; ++i) CHECK(registers.watched(i));
    registers.give(4, 4);
    for (unsigned i = 0; i < 16; ++i) CHECK(!registers.watched(i));
}

CASE(adjacent_registers_form_one_run) {
    Registers registers;
    uint32_t* d = registers.d;
    uint32_t* variables[] = {d + 2, d + 3, d + 4, d + 6, d + 9, d + 8};
    accumulators_pending(*registers.thread.thread, variables, 6);
    for (unsigned i = 0; i < 16; ++i)
        CHECK_EQUAL(registers.watched(i), (i >= 2 && i <= 4) || i == 6 || i == 8 || i == 9);
    sim::checks::forget_findings();
    registers.touch(2, 3);
    CHECK_EQUAL(finding(0).count, 1);
    accumulators_ready(*registers.thread.thread, variables, 3);
    for (unsigned i = 0; i < 16; ++i) CHECK_EQUAL(registers.watched(i), i == 6 || i == 8 || i == 9);
    Registers others;
    uint32_t* apart[] = {others.d + 9, others.d + 4};
    accumulators_pending(*others.thread.thread, apart, 2);
    for (unsigned i = 0; i < 16; ++i) CHECK_EQUAL(others.watched(i), i == 4 || i == 9);
    uint32_t* alone = others.d;
    accumulators_pending(*others.thread.thread, &alone, 1);
    CHECK(others.watched(0) && !others.watched(1));
}

CASE(wait_releases_only_its_own_accumulators) {
    for (unsigned given : {0, 4, 8}) {
        Registers registers;
        for (unsigned first : {0, 4, 8}) registers.take(first, 4);
        registers.give(given, 4);
        for (unsigned i = 0; i < 12; ++i) CHECK_EQUAL(registers.watched(i), i - given >= 4);
    }
}

CASE(later_wgmma_takes_over_pending_accumulators) {
    Registers registers;
    for (unsigned first : {0, 4, 8, 12}) registers.take(first, 4);
    for (unsigned first : {0, 4, 8, 12}) registers.give(first, 4);
    for (unsigned first : {4, 8}) registers.touch(first);
    registers.take(6, 4);
    CHECK_FOUND("missing_wgmma_fence");
    CHECK_EQUAL(finding(0).count, 2);
    registers.take(0, 4);  // registers 0-3 and 12-15 were not accessed
    registers.take(12, 4);
    CHECK_EQUAL(finding(0).count, 2);
    for (unsigned i = 0; i < 16; ++i) CHECK_EQUAL(registers.watched(i), i < 4 || (i >= 6 && i < 10) || i >= 12);
}

CASE(load_destination_is_undefined_before_the_wait) {
    Registers registers;
    registers.take(12, 4);
    for (unsigned first : {0, 4, 8}) registers.with(tensor_registers_pending, first, 4, code + 2);
    for (unsigned given : {4, 0}) {
        CHECK(registers.watched(5) == (given == 4) && registers.watched(3) && registers.watched(8));
        CHECK(!strcmp(name_of(finding(0).kind), "tensor_load_not_awaited") && finding(0).other.address == code + 2);
        registers.with(tensor_registers_ready, given, 4);
        CHECK(registers.thread.watches);
    }
    for (unsigned i = 0; i < 16; ++i) CHECK_EQUAL(registers.watched(i), i >= 8);
    registers.with(tensor_registers_ready, 8, 8);  // registers 12-15 still belong to a wgmma
    for (unsigned i = 0; i < 16; ++i) CHECK_EQUAL(registers.watched(i), i >= 12);
    CHECK(!strcmp(name_of(finding(0).kind), "accumulator_not_awaited"));
}

CASE(thread_is_watched_while_a_load_is_pending) {
    Registers registers(false);
    CHECK(!registers.thread.watches);
    for (unsigned turn = 0; turn < 2; ++turn) {
        registers.with(tensor_registers_pending, 0, 4);
        CHECK(registers.thread.watches && registers.watched(0));
        registers.with(tensor_registers_ready, 0, 4);
        CHECK(!registers.thread.watches && !registers.watched(0));
    }
}

CASE(register_tracking_reuses_its_memory) {
    constexpr unsigned count = 16384;
    static uint32_t many[2 * count];
    static uint32_t* variables[2 * count];
    for (unsigned i = 0; i < 2 * count; ++i) variables[i] = many + i;
    CHECK(!unit::leaks([] {
        Registers registers;
        for (unsigned turn = 0; turn < 4; ++turn) {
            unsigned first = turn / 2 * (count / 2);
            accumulators_pending(*registers.thread.thread, variables + first, count);
            accumulators_ready(*registers.thread.thread, variables + first, count);
        }
    }));
}

CASE(pending_writes_are_settled_before_wgmma) {
    for (unsigned event = 0; event < 4; ++event) {
        Registers registers;
        race(registers.grid);
        if (event == 0) registers.take(0, 4);
        if (event == 1) registers.with(tensor_registers_pending, 0, 4);
        if (event == 2) wgmma_fenced(registers.grid.warp(0, 1));
        if (event == 3) wgmma_done(registers.grid.warp(0, 1), 1);
        CHECK_FOUND("within_block");
        CHECK(!registers.thread.pending);
    }
}

CASE(wgmma_without_a_wait_is_reported_for_its_warp) {
    Grid grid(1, 128);
    wgmma_at_exit(grid.warp(0, 2), code + 5);
    CHECK_FOUND("wgmma_at_exit");
    CHECK(finding(0).side.thread == 64 && finding(0).side.address == code + 5);
}

// --- operands in shared memory ---

namespace {

// The operands A [64, 16] and three B [16, 8]: bfloat16, K-major, without swizzle, written by all threads.
struct Operands {
    static constexpr unsigned of_a = 0, of_b = 2048, b_bytes = 256;
    Operands() : grid(1, 128) {
        for (unsigned at = 0; at < of_b + 3 * b_bytes; at += 4) write(at / 4 % 128, at);
        for (unsigned thread = 0; thread < 128; ++thread) proxy_fence(*grid.thread(0, thread).thread);
        grid.syncthreads(0);
    }
    void write(unsigned thread, unsigned at) {
        ThreadState& state = grid.thread(0, thread);
        on_access<2, true>(state, reinterpret_cast<uintptr_t>(grid.shared(0) + at), code + 1);
        ++grid.shared(0)[at];
        if (state.pending) settle(state, 0, nullptr);
    }
    uint64_t describe(unsigned at) {
        return sim::shared_window_offset(grid.shared(0) + at) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    }
    void multiply(uint64_t number, unsigned b, bool a_in_registers = false, const void* place = code) {
        sim::current_thread = grid.thread(0, 0).thread;
        sim::Wgmma kind = {
            8,    sim::Element::f32, sim::Element::bf16, sim::Element::bf16, a_in_registers, false, false, false, false,
            false};
        wgmma_issued(&grid.warp(0, 0), {kind, describe(of_a), describe(of_b + b * b_bytes), number, place});
        sim::current_thread = nullptr;
    }
    void wait(unsigned warp, uint64_t number) { wgmma_done(grid.warp(0, warp), number); }
    // Makes a write, and returns whether it is reported as a race with a wgmma.
    bool overtakes(unsigned thread, unsigned at) {
        sim::checks::forget_findings();
        write(thread, at);
        if (finding_count()) CHECK_FOUND("operands_not_awaited");
        return finding_count() > 0;
    }

    Grid grid;
};

}  // namespace

CASE(wgmma_operations_and_operand_bytes_are_counted) {
    Operands operands;
    operands.multiply(1, 0, false, code + 2);
    operands.multiply(2, 0, false, code + 2);
    operands.multiply(3, 0, true, code + 3);
    CHECK_FOUND("nothing");
    auto of = [](HashMap<uint64_t>& counts, const char* place) { return counts.at(reinterpret_cast<uint64_t>(place)); };
    CHECK_EQUAL(of(the_launch.tensor_operations_at, code + 2), 2 * 2 * 64 * 8 * 16);
    CHECK_EQUAL(of(the_launch.operand_bytes_at, code + 2), 2 * (64 + 8) * 32);
    CHECK_EQUAL(of(the_launch.tensor_operations_at, code + 3), 2 * 64 * 8 * 16);
    CHECK_EQUAL(of(the_launch.operand_bytes_at, code + 3), 8 * 32);
    CHECK_EQUAL(the_launch.tensor_operations[static_cast<unsigned>(sim::TensorType::bf16)], 3 * 2 * 64 * 8 * 16);
}

CASE(each_warp_reads_its_rows_of_a_and_all_of_b) {
    for (unsigned at = 0; at < Operands::of_b + 2 * Operands::b_bytes; at += 128) {
        Operands operands;
        operands.multiply(1, 0);
        bool read = at < Operands::of_b + Operands::b_bytes;
        CHECK_EQUAL(operands.overtakes(5, at + 124), read);
        if (!read) continue;
        const Side& other = finding(0).other;
        CHECK(other.address == code && other.access == static_cast<uint8_t>(Access::operand_read));
        CHECK_EQUAL(other.thread, at < Operands::of_b ? at / 512 * 32 : 0);
    }
}

CASE(wgmma_is_complete_for_threads_ordered_after_its_wait) {
    Operands operands;
    for (unsigned i = 0; i < 3; ++i) operands.multiply(i + 1, i, true);
    operands.wait(2, 1);
    operands.wait(2, 2);
    operands.grid.syncthreads(0);
    operands.wait(2, 3);
    unsigned at = Operands::of_b;  // each thread writes its own element
    for (unsigned thread : {5, 40, 127})
        for (unsigned b : {1, 0, 2, 1, 0})
            CHECK_EQUAL(operands.overtakes(thread, (at += 4) + Operands::b_bytes * b), b == 2);
    CHECK(!operands.overtakes(70, at + 4 + Operands::b_bytes * 2));  // this thread's warp has waited
}

CASE(wait_for_an_older_wgmma_is_not_enough) {
    Operands operands;
    operands.multiply(1, 0);
    operands.multiply(2, 0);
    operands.wait(0, 1);
    CHECK(operands.overtakes(0, 0) && operands.overtakes(0, 2048));
    operands.wait(0, 2);
    CHECK(!operands.overtakes(0, 512) && !operands.overtakes(0, 2048 + 4));
    CHECK(operands.overtakes(32, 1024));
}

CASE(wgmma_state_ends_with_its_block) {
    CHECK(!unit::leaks([] {
        Operands operands;
        for (unsigned i = 1; i < 1000; ++i) operands.wait(0, i);
        operands.multiply(1, 0);
    }));
}
