// Tensor memory, event by event: which of its cells hold values, and what orders who uses them.
#include "checks/tensor_memory.h"

#include "checks/access.h"
#include "runtime/events.h"
#include "runtime/tensor_memory.h"
#include "sim/shared.h"

#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using namespace sim::events;
using unit::Grid;

namespace {

const char code[16] = {};  // places in a kernel

// A block of four warps, which all have written the operands of products: A [128, 16], and B [32, 16] behind it.
struct Block {
    static constexpr unsigned of_b = 4096, operand_bytes = of_b + 1024;
    Block() : grid(1, 128) {
        for (unsigned at = 0; at < operand_bytes; at += 4) write(at / 4 % 128, at);
        for (unsigned thread = 0; thread < 128; ++thread) proxy_fence(*grid.thread(0, thread).thread);
        grid.syncthreads(0);
    }
    void write(unsigned thread, unsigned at) {
        ThreadState& state = grid.thread(0, thread);
        on_access<2, true>(state, reinterpret_cast<uintptr_t>(grid.shared(0) + at), code + 1);
        ++grid.shared(0)[at];
        if (state.pending) settle(state, 0, nullptr);
    }
    void transfer(unsigned warp, bool stores, unsigned column, unsigned columns, const void* place = code) {
        tensor_transfer(grid.warp(0, warp), {0, 32, column, columns}, stores, place);
    }
    void wait(unsigned warp, bool stores) { tensor_waited(grid.warp(0, warp), stores); }
    void fence(unsigned thread, bool after) { tensor_fence(*grid.thread(0, thread).thread, after); }
    // What a thread knows that waited, met the others and executed a fence.
    void meet(unsigned waited, unsigned thread) {
        fence(waited, false);
        grid.syncthreads(0);
        fence(thread, true);
    }
    uint64_t describe(unsigned at) {
        sim::current_thread = grid.thread(0, 0).thread;
        uint64_t offset = sim::shared_window_offset(grid.shared(0) + at);
        sim::current_thread = nullptr;
        return offset >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    }
    void multiply(uint64_t number, unsigned m = 128, bool adds = false, unsigned thread = 0,
                  bool a_in_tensor_memory = false) {
        sim::TensorOperation operation = {};
        operation.product.a = a_in_tensor_memory ? 64 : describe(0);
        operation.product.b = describe(of_b);
        operation.product.adds = adds;
        operation.product.a_in_tensor_memory = a_in_tensor_memory;
        operation.shape.m = m;
        operation.shape.n = 32;
        operation.number = number;
        begin(operation, thread);
    }
    void copy(uint64_t number) {  // of 128 lanes and 4 columns
        sim::TensorOperation operation = {};
        operation.product.a = describe(0);
        operation.copy_bits = 128;
        operation.number = number;
        begin(operation, 0);
    }
    void begin(const sim::TensorOperation& operation, unsigned thread) {
        sim::Thread& issuer = *grid.thread(0, thread).thread;
        issuer.call_address = code + 2;
        tensor_operation(issuer, operation);
    }
    void complete(uint64_t number, unsigned thread) { note_awaited(grid.thread(0, thread), grid.thread(0, 0), number); }

    Grid grid;
};

}  // namespace

CASE(another_warp_loads_what_was_stored_and_waited_for) {
    enum { well, waits_again, no_wait, other_wait, no_fence_before, no_fence_after, no_barrier };
    const char* kinds[] = {"nothing",
                           "nothing",
                           "tensor_transfer_not_awaited",
                           "tensor_transfer_not_awaited",
                           "missing_tensor_fence_before",
                           "missing_tensor_fence_after",
                           "tensor_memory_race"};
    for (int how = well; how <= no_barrier; ++how) {
        Block block;
        block.transfer(0, true, 0, 8, code + 3);
        if (how != no_wait) block.wait(0, how != other_wait);
        if (how != no_fence_before) block.fence(0, false);
        if (how != no_barrier) block.grid.syncthreads(0);
        if (how != no_fence_after) block.fence(32, true);
        if (how == waits_again) block.wait(0, true);
        block.transfer(1, false, 0, 8, code + 4);
        CHECK_FOUND(kinds[how]);
        if (!finding_count()) continue;
        CHECK(finding(0).side.address == code + 4 && finding(0).other.address == code + 3);
        CHECK(!strcmp(finding(0).detail, "tcgen05.ld | tcgen05.st") && finding(0).data == 0 && finding(0).count == 1);
    }
}

CASE(a_store_follows_the_loads_before_it) {
    for (bool waits : {false, true}) {
        Block block;
        block.transfer(0, true, 0, 8);
        block.wait(0, true);
        block.meet(0, 32);
        block.transfer(1, false, 2, 2);
        if (waits) block.wait(1, false);
        block.meet(32, 0);
        block.transfer(0, true, 0, 8);
        CHECK_FOUND(waits ? "nothing" : "tensor_transfer_not_awaited");
        if (!waits) CHECK_EQUAL(finding(0).data, 2);
    }
}

CASE(what_nobody_has_written_has_no_value) {
    Block block;
    block.transfer(0, true, 4, 4);
    block.wait(0, true);
    block.transfer(0, false, 4, 4);
    CHECK_FOUND("nothing");
    block.transfer(0, false, 5, 4);
    CHECK_FOUND("tensor_memory_uninitialised");
    CHECK(finding(0).data == 8 && finding(0).count == 1 && !strcmp(finding(0).detail, "tcgen05.ld"));
}

CASE(columns_that_are_given_out_hold_nothing) {
    for (unsigned column = 6; column < 13; ++column) {
        Block block;
        block.transfer(0, true, 0, 16);
        block.wait(0, true);
        tensor_allocated(*block.grid.thread(0, 0).thread, block.grid.shared(0) + 8192, 8, 4);
        block.transfer(0, false, column, 1);
        CHECK_FOUND(column >= 8 && column < 12 ? "tensor_memory_uninitialised" : "nothing");
    }
}

CASE(columns_that_are_given_back_are_not_in_use) {
    for (unsigned column = 6; column < 13; ++column) {
        for (bool waits : {false, true}) {
            Block block;
            block.transfer(0, true, column, 1, code + 3);
            if (waits) block.wait(0, true);
            tensor_released(*block.grid.thread(0, 0).thread, 8, 4);
            CHECK_FOUND(!waits && column >= 8 && column < 12 ? "tensor_memory_freed_in_use" : "nothing");
            if (!finding_count()) continue;
            CHECK(finding(0).data == column && finding(0).other.address == code + 3);
            CHECK(!strcmp(finding(0).detail, "tcgen05.st"));
        }
    }
}

CASE(a_product_is_complete_to_who_has_waited_for_it) {
    enum { well, well_by_another, no_wait, older_wait, no_fence };
    for (int how = well; how <= no_fence; ++how) {
        Block block;
        block.multiply(1);
        block.multiply(2, 128, true);
        unsigned waits = how == well_by_another ? 70 : 0;
        if (how != no_wait) block.complete(how == older_wait ? 1 : 2, waits);
        if (waits) block.meet(waits, 0);
        if (how != no_fence) block.fence(0, true);
        block.transfer(0, false, 31, 1);
        CHECK_FOUND(how <= well_by_another ? "nothing"
                    : how == no_fence      ? "missing_tensor_fence_after"
                                           : "tensor_product_not_awaited");
        if (how > well_by_another) CHECK(finding(0).other.address == code + 2 && finding(0).data == 31);
    }
}

CASE(a_product_fills_as_many_lanes_and_columns_as_it_has_rows_and_columns) {
    for (unsigned m : {64, 128}) {
        Block block;
        block.multiply(1, m);
        block.complete(1, 0);
        block.fence(0, true);
        block.transfer(0, false, 0, 32);
        CHECK_FOUND(m == 64 ? "tensor_memory_uninitialised" : "nothing");
        if (m == 64) CHECK_EQUAL(finding(0).data, 16 << 16);
        sim::checks::forget_findings();
        block.transfer(0, false, 32, 1);
        CHECK_FOUND("tensor_memory_uninitialised");
    }
}

CASE(sums_begin_with_something) {
    for (bool adds : {false, true}) {
        Block block;
        block.multiply(1, 128, adds);
        CHECK_FOUND(adds ? "tensor_memory_uninitialised" : "nothing");
        if (adds) CHECK(!strcmp(finding(0).detail, "tcgen05.mma"));
    }
}

CASE(a_product_reads_its_a_in_tensor_memory) {
    for (unsigned stored : {7, 8}) {
        Block block;
        for (unsigned warp = 0; warp < 4; ++warp) {
            tensor_transfer(block.grid.warp(0, warp), {32 * warp, 32, 64, stored}, true, code);
            block.wait(warp, true);
            block.fence(32 * warp, false);
        }
        block.meet(0, 0);
        block.multiply(1, 128, false, 0, true);
        CHECK_FOUND(stored == 8 ? "nothing" : "tensor_memory_uninitialised");
        if (stored == 7) continue;
        block.transfer(0, true, 71, 1);  // it may still read that
        CHECK_FOUND("tensor_product_not_awaited");
    }
}

CASE(operations_and_the_bytes_that_they_read_are_counted) {
    Block block;
    block.multiply(1);
    block.multiply(2, 64);
    block.copy(3);
    auto key = reinterpret_cast<uint64_t>(code + 2);
    CHECK_EQUAL(the_launch.tensor_operations_at.at(key), 2 * (128 + 64) * 32 * 16);
    CHECK_EQUAL(the_launch.operand_bytes_at.at(key), (128 + 32 + 64 + 32) * 32);
}

CASE(operands_are_read_until_somebody_has_waited) {
    for (unsigned at = 0; at < Block::operand_bytes; at += 252) {
        Block block;
        block.multiply(1);
        block.multiply(2);
        block.complete(1, 0);
        block.write(0, at);
        CHECK_FOUND("operands_not_awaited");
        CHECK(finding(0).other.thread == 0 && finding(0).other.address == code + 2);
        sim::checks::forget_findings();
        block.complete(2, 0);
        block.write(0, at + 4 < Block::operand_bytes ? at + 4 : 0);
        CHECK_FOUND("nothing");
    }
}

CASE(operands_are_free_to_who_comes_after_a_wait_of_another) {
    for (unsigned number : {1, 2, 3}) {
        Block block;
        for (unsigned i = 1; i <= 3; ++i) block.multiply(i);
        block.complete(number, 70);
        for (bool met : {false, true}) {
            sim::checks::forget_findings();
            block.write(5, met ? 20 : 532);
            CHECK_FOUND(met && number == 3 ? "nothing" : "operands_not_awaited");
            block.grid.syncthreads(0);
        }
    }
}

CASE(a_copy_reads_shared_memory_and_fills_columns) {
    Block block;
    block.copy(1);
    block.complete(1, 0);
    block.fence(0, true);
    block.transfer(0, false, 0, 4);
    CHECK_FOUND("nothing");
    block.transfer(0, false, 4, 1);
    CHECK_FOUND("tensor_memory_uninitialised");
    sim::checks::forget_findings();
    block.wait(0, false);
    block.fence(0, false);
    block.copy(2);
    block.write(5, 20);
    CHECK_FOUND("operands_not_awaited");
}

CASE(what_is_known_of_tensor_memory_ends_with_its_block) {
    CHECK(!unit::leaks([] {
        Block block;
        for (unsigned i = 0; i < 1000; ++i) block.fence(0, false);
        for (unsigned i = 1; i < 500; ++i) block.complete(i, 0);
        for (unsigned i = 0; i < 500; ++i) block.transfer(0, true, 0, 1);
        block.multiply(500);
    }));
}
