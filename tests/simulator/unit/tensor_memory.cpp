// Tests of tensor memory (tcgen05), event by event: which cells have values, and the order of accesses.
#include "checks/asynchronous/tensor_memory.h"

#include "checks/core/access.h"
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

const char code[16] = {};  // addresses in it stand for instructions of a kernel

// Blocks of four warps in one cluster. In each block, all threads have written the operands of an mma: A [128, 16], and
// B [32, 16] after it. The memory between A and B and after B is unwritten.
struct Block {
    static constexpr unsigned bytes_of_a = 4096, of_b = 4608, operand_bytes = of_b + 1024;
    explicit Block(unsigned blocks = 1) : grid(blocks, 128, blocks) {
        for (unsigned block = 0; block < blocks; ++block) {
            for (unsigned at = 0; at < operand_bytes; at += 4)
                if (is_operand(at)) write(at / 4 % 128, at, block);
            for (unsigned thread = 0; thread < 128; ++thread) proxy_fence(*grid.thread(block, thread).thread);
            grid.syncthreads(block);
        }
        if (blocks > 1) cluster_sync();
    }
    static bool is_operand(unsigned at) { return at < bytes_of_a || (at >= of_b && at < operand_bytes); }
    void begin_write(unsigned thread, unsigned at, unsigned block = 0) {
        on_access<2, true>(grid.thread(block, thread), reinterpret_cast<uintptr_t>(grid.shared(block) + at), code + 1);
        ++grid.shared(block)[at];
    }
    void write(unsigned thread, unsigned at, unsigned block = 0) {
        begin_write(thread, at, block);
        ThreadState& state = grid.thread(block, thread);
        if (state.pending) settle(state, 0, nullptr);
    }
    void transfer(unsigned warp, bool stores, unsigned column, unsigned columns, const void* place = code,
                  unsigned block = 0) {
        tensor_transfer(grid.warp(block, warp), {0, 32, column, columns}, stores, place);
    }
    void wait(unsigned warp, bool stores) { tensor_waited(grid.warp(0, warp), stores); }
    void fence(unsigned thread, bool after, unsigned block = 0) {
        tensor_fence(*grid.thread(block, thread).thread, after);
    }
    // Thread `waited` has waited. It executes a tcgen05 fence, the block synchronizes, and `thread` executes another
    // fence.
    void meet(unsigned waited, unsigned thread) {
        fence(waited, false);
        grid.syncthreads(0);
        fence(thread, true);
    }
    // A cluster barrier. Without first_releases, thread 0 arrives relaxed.
    void cluster_sync(bool first_releases = true) {
        for (unsigned thread = 0; thread < 256; ++thread)
            grid.arrive_at_cluster(thread / 128, thread % 128, first_releases || thread);
        grid.complete_cluster(0);
        for (unsigned thread = 0; thread < 256; ++thread) grid.wait_for_cluster(thread / 128, thread % 128);
    }
    uint64_t describe(unsigned at) {
        sim::current_thread = grid.thread(0, 0).thread;
        uint64_t offset = sim::shared_window_offset(grid.shared(0) + at);
        sim::current_thread = nullptr;
        return offset >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    }
    sim::TensorOperation wgmma_issued(uint64_t number, unsigned m) {
        sim::TensorOperation operation = {};
        operation.mma.a = describe(0);
        operation.mma.b = describe(of_b);
        operation.shape.m = m;
        operation.shape.n = 32;
        operation.number = number;
        return operation;
    }
    void multiply(uint64_t number, unsigned m = 128, bool adds = false, unsigned thread = 0,
                  bool a_in_tensor_memory = false) {
        sim::TensorOperation operation = wgmma_issued(number, m);
        if (a_in_tensor_memory) operation.mma.a = 64;
        operation.mma.adds = adds;
        operation.mma.a_in_tensor_memory = a_in_tensor_memory;
        begin(operation, thread);
    }
    void multiply_by_both(unsigned m) {
        sim::TensorOperation operation = wgmma_issued(1, m);
        operation.mma.pair = true;
        begin(operation, 0);
    }
    void copy(uint64_t number) {  // to 128 lanes and 4 columns
        sim::TensorOperation operation = {};
        operation.mma.a = describe(0);
        operation.copy_bits = 128;
        operation.number = number;
        begin(operation, 0);
    }
    void begin(const sim::TensorOperation& operation, unsigned thread) {
        sim::Thread& issuer = *grid.thread(0, thread).thread;
        issuer.call_address = code + 2;
        tensor_operation(issuer, operation);
    }
    void complete(uint64_t number, unsigned thread, unsigned issuer = 0) {
        note_awaited(grid.thread(0, thread), grid.thread(0, issuer), number);
    }

    Grid grid;
};

}  // namespace

CASE(tensor_store_is_visible_to_another_warp_after_wait_and_fences) {
    enum { well, waits_again, no_wait, other_wait, no_fence_before, late_fence_before, no_fence_after, no_barrier };
    const char* kinds[] = {"nothing",
                           "nothing",
                           "tensor_transfer_not_awaited",
                           "tensor_transfer_not_awaited",
                           "missing_tensor_fence_before",
                           "missing_tensor_fence_before",
                           "missing_tensor_fence_after",
                           "tensor_memory_race"};
    for (int how = well; how <= no_barrier; ++how) {
        Block block;
        block.transfer(0, true, 0, 8, code + 3);
        if (how != no_wait) block.wait(0, how != other_wait);
        if (how == late_fence_before) block.grid.arrive(0, 1, 0);
        if (how != no_fence_before) block.fence(0, false);
        if (how == late_fence_before)
            block.grid.meet(0, 1, {1});
        else if (how != no_barrier)
            block.grid.syncthreads(0);
        if (how != no_fence_after) block.fence(32, true);
        if (how == waits_again) block.wait(0, true);
        block.transfer(1, false, 0, 8, code + 4);
        CHECK_FOUND(kinds[how]);
        if (!finding_count()) continue;
        CHECK(finding(0).side.address == code + 4 && finding(0).other.address == code + 3);
        CHECK(unit::says(finding(0), "tcgen05.ld | tcgen05.st") && unit::number_in(finding(0), 1) == 0 &&
              finding(0).count == 1);
    }
}

CASE(tensor_store_must_follow_completed_loads) {
    for (bool waits : {false, true}) {
        Block block;
        block.transfer(3, true, 100, 1);  // a load at another address, which is never waited for
        block.transfer(0, true, 0, 8);
        block.wait(0, true);
        block.meet(0, 32);
        block.transfer(1, false, 2, 2);
        if (waits) block.wait(1, false);
        block.meet(32, 0);
        block.transfer(0, true, 0, 8);
        CHECK_FOUND(waits ? "nothing" : "tensor_transfer_not_awaited");
        if (!waits) CHECK_EQUAL(unit::number_in(finding(0), 1), 2);
    }
}

CASE(unwritten_tensor_memory_is_uninitialized) {
    Block block;
    block.transfer(0, true, 4, 4);
    block.wait(0, true);
    block.transfer(0, false, 4, 4);
    CHECK_FOUND("nothing");
    block.transfer(0, false, 5, 4);
    CHECK_FOUND("tensor_memory_uninitialized");
    CHECK(unit::number_in(finding(0), 1) == 8 && finding(0).count == 1 && unit::says(finding(0), "tcgen05.ld"));
}

CASE(allocated_columns_are_uninitialized) {
    for (unsigned column = 6; column < 13; ++column) {
        Block block;
        block.transfer(0, true, 0, 16);
        block.wait(0, true);
        tensor_allocated(*block.grid.thread(0, 0).thread, block.grid.shared(0) + 8192, 8, 4);
        block.transfer(0, false, column, 1);
        CHECK_FOUND(column >= 8 && column < 12 ? "tensor_memory_uninitialized" : "nothing");
    }
}

CASE(deallocated_columns_must_have_no_pending_operations) {
    for (unsigned column = 6; column < 13; ++column) {
        for (bool waits : {false, true}) {
            Block block;
            block.transfer(0, true, column, 1, code + 3);
            if (waits) block.wait(0, true);
            tensor_released(*block.grid.thread(0, 0).thread, 8, 4);
            CHECK_FOUND(!waits && column >= 8 && column < 12 ? "tensor_memory_freed_in_use" : "nothing");
            if (!finding_count()) continue;
            CHECK(unit::number_in(finding(0)) == column && finding(0).other.address == code + 3);
            CHECK(unit::says(finding(0), "tcgen05.st"));
        }
    }
}

CASE(mma_is_complete_for_threads_ordered_after_the_wait) {
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
        if (how > well_by_another) CHECK(finding(0).other.address == code + 2 && unit::number_in(finding(0), 1) == 31);
    }
}

CASE(mma_writes_its_shape_in_lanes_and_columns) {
    for (unsigned m : {64, 128}) {
        Block block;
        block.multiply(1, m);
        block.complete(1, 0);
        block.fence(0, true);
        block.transfer(0, false, 0, 32);
        CHECK_FOUND(m == 64 ? "tensor_memory_uninitialized" : "nothing");
        if (m == 64) CHECK(unit::number_in(finding(0)) == 16 && unit::number_in(finding(0), 1) == 0);
        sim::checks::forget_findings();
        block.transfer(0, false, 32, 1);
        CHECK_FOUND("tensor_memory_uninitialized");
    }
}

CASE(accumulating_mma_reads_initialized_accumulators) {
    for (bool adds : {false, true}) {
        Block block;
        block.multiply(1, 128, adds);
        CHECK_FOUND(adds ? "tensor_memory_uninitialized" : "nothing");
        if (adds) CHECK(unit::says(finding(0), "tcgen05.mma"));
    }
}

CASE(mma_reads_operand_a_in_tensor_memory) {
    for (unsigned stored : {7, 8}) {
        Block block;
        for (unsigned warp = 0; warp < 4; ++warp) {
            tensor_transfer(block.grid.warp(0, warp), {32 * warp, 32, 64, stored}, true, code);
            block.wait(warp, true);
            block.fence(32 * warp, false);
        }
        block.meet(0, 0);
        block.multiply(1, 128, false, 0, true);
        CHECK_FOUND(stored == 8 ? "nothing" : "tensor_memory_uninitialized");
        if (stored == 7) {
            CHECK_EQUAL(unit::number_in(finding(0), 1), 71);
            continue;
        }
        block.transfer(0, true, 71, 1);  // the mma may still read these columns
        CHECK_FOUND("tensor_product_not_awaited");
    }
}

CASE(tensor_operations_and_operand_bytes_are_counted) {
    Block block;
    block.multiply(1);
    block.multiply(2, 64);
    block.copy(3);
    auto key = reinterpret_cast<uint64_t>(code + 2);
    CHECK_EQUAL(the_launch.tensor_operations_at.at(key), 2 * (128 + 64) * 32 * 16);
    CHECK_EQUAL(the_launch.operand_bytes_at.at(key), (128 + 32 + 64 + 32) * 32);
}

CASE(operands_are_in_use_until_a_thread_has_waited) {
    for (unsigned at = 0; at < Block::operand_bytes; at += 252) {
        Block block;
        block.multiply(1);
        block.multiply(2);
        block.complete(1, 0);
        block.write(0, at);
        if (!Block::is_operand(at)) {
            CHECK_FOUND("nothing");
            continue;
        }
        CHECK_FOUND("operands_not_awaited");
        CHECK(finding(0).other.thread == 0 && finding(0).other.address == code + 2);
        sim::checks::forget_findings();
        block.complete(2, 0);
        block.write(0, Block::is_operand(at + 4) ? at + 4 : 0);
        CHECK_FOUND("nothing");
    }
}

CASE(commit_of_one_thread_does_not_complete_operations_of_another) {
    Block block;
    block.multiply(1, 128, false, 32);
    block.complete(2, 0);
    block.fence(0, true);
    block.transfer(0, false, 0, 1);
    CHECK_FOUND("tensor_product_not_awaited");
    sim::checks::forget_findings();
    block.write(0, 0);
    CHECK_FOUND("operands_not_awaited");
    sim::checks::forget_findings();
    block.complete(1, 0, 32);
    Epoch waited = block.grid.thread(0, 0).epoch;
    block.fence(0, true);
    block.transfer(0, false, 0, 1);
    block.write(0, 4);
    CHECK_FOUND("nothing");
    block.complete(1, 0, 32);  // the thread has already waited for this operation
    CHECK(block.grid.thread(0, 0).epoch == waited);
}

CASE(operand_writes_need_a_proxy_fence_before_the_mma) {
    Block block;
    for (unsigned thread : {1, 2, 3}) block.write(thread, 16 * thread);
    block.grid.syncthreads(0);
    block.multiply(1);
    CHECK_FOUND("missing_proxy_fence");
    CHECK(finding(0).count == 1 && finding(0).other.has_thread && finding(0).other.thread == 1);
}

CASE(operands_are_free_for_threads_ordered_after_a_wait) {
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

CASE(copy_reads_shared_memory_and_writes_columns) {
    Block block;
    block.copy(1);
    block.complete(1, 0);
    block.fence(0, true);
    block.transfer(0, false, 0, 4);
    CHECK_FOUND("nothing");
    block.transfer(0, false, 4, 1);
    CHECK_FOUND("tensor_memory_uninitialized");
    sim::checks::forget_findings();
    block.copy(2);
    CHECK_FOUND("tensor_transfer_not_awaited");
    CHECK(unit::number_in(finding(0), 1) == 0 && unit::says(finding(0), "tcgen05.cp | tcgen05.ld"));
    sim::checks::forget_findings();
    block.wait(0, false);
    block.fence(0, false);
    block.copy(3);
    block.write(5, 20);
    CHECK_FOUND("operands_not_awaited");
}

CASE(mma_of_a_cta_pair_accesses_both_blocks) {
    for (unsigned m : {128, 256}) {
        for (unsigned other : {0, 1}) {
            Block block(2);
            block.multiply_by_both(m);
            CHECK_FOUND("nothing");
            const unsigned end_of_a = 16 * m, columns = m == 128 ? 16 : 32;
            // Each block of the pair holds half of the columns of B.
            for (unsigned at : {end_of_a - 4, end_of_a, Block::of_b + 508, Block::of_b + 512}) {
                sim::checks::forget_findings();
                block.write(5, at, other);
                CHECK_FOUND(at == end_of_a - 4 || at == Block::of_b + 508 ? "operands_not_awaited" : "nothing");
            }
            sim::checks::forget_findings();
            block.transfer(0, false, columns - 1, 1, code, other);
            CHECK_FOUND("tensor_product_not_awaited");
            sim::checks::forget_findings();
            block.transfer(0, false, columns, 1, code, other);
            CHECK_FOUND("tensor_memory_uninitialized");
            auto key = reinterpret_cast<uint64_t>(code + 2);
            CHECK_EQUAL(the_launch.tensor_operations_at.at(key), 2 * m * 32 * 16);
            CHECK_EQUAL(the_launch.operand_bytes_at.at(key), (m + 32) * 32);
        }
    }
}

CASE(wait_in_another_block_must_be_known_at_the_fence) {
    enum { well, well_by_the_block, fence_too_early, no_fence, not_met };
    for (int how = well; how <= not_met; ++how) {
        Block block(2);
        block.multiply_by_both(256);
        block.complete(1, 0);
        if (how == fence_too_early) block.fence(0, true, 1);
        if (how == well_by_the_block) block.grid.syncthreads(0);
        if (how != not_met) block.cluster_sync(how != well_by_the_block);
        if (how != fence_too_early && how != no_fence) block.fence(0, true, 1);
        block.transfer(0, false, 0, 1, code, 1);
        CHECK_FOUND(how <= well_by_the_block ? "nothing"
                    : how == not_met         ? "tensor_product_not_awaited"
                                             : "missing_tensor_fence_after");
    }
}

CASE(tensor_wait_covers_all_lanes_of_the_warp) {
    Block block;
    Epoch next = block.grid.thread(0, 32).epoch;
    block.transfer(0, true, 0, 8);
    block.wait(0, true);
    for (unsigned lane = 1; lane < 32; ++lane)
        CHECK_EQUAL(block.grid.thread(0, lane).time(), block.grid.thread(0, 0).time());
    CHECK(block.grid.thread(0, 32).epoch == next && block.grid.thread(0, 0).time() > next.time());
    block.meet(31, 32);  // any lane of the warp may execute the fence
    block.transfer(1, false, 0, 8);
    CHECK_FOUND("nothing");
}

CASE(pending_writes_are_settled_before_tensor_operations) {
    for (unsigned event = 0; event < 4; ++event) {
        Block block;
        for (unsigned thread : {32, 5}) block.begin_write(thread, 8192);
        CHECK(block.grid.thread(0, 5).pending && finding_count() == 0);
        sim::Thread& thread = *block.grid.thread(0, 5).thread;
        if (event == 0) tensor_allocated(thread, block.grid.shared(0) + 8200, 0, 32);
        if (event == 1) block.multiply(1, 128, false, 5);
        if (event == 2) block.fence(5, false);
        if (event == 3) block.wait(0, false);
        CHECK_FOUND("within_block");
        CHECK(!block.grid.thread(0, 5).pending);
    }
}

CASE(allocation_writes_its_address_to_shared_memory) {
    for (unsigned piece : {0, 2, 3, 4}) {
        Block block;
        char* taken = block.grid.shared(0) + 8192;
        // A one-byte access, so that granules become single bytes.
        on_access<0, true>(block.grid.thread(0, 0), reinterpret_cast<uintptr_t>(taken + 16), code);
        tensor_allocated(*block.grid.thread(0, 0).thread, taken, 0, 32);
        on_access<0, false>(block.grid.thread(0, 0), reinterpret_cast<uintptr_t>(taken + piece), code + 1);
        CHECK_FOUND(piece < 4 ? "nothing" : "uninitialized_read");
    }
    Block block;
    tensor_allocated(*block.grid.thread(0, 0).thread, block.grid.shared(0) + unit::shared_bytes, 0, 32);
    CHECK_FOUND("out_of_bounds");
}

CASE(pending_tensor_operations_at_block_end_are_reported) {
    static sim::TensorMemory memory;
    Block block;
    sim::Block& ends = block.grid.block(0);
    tensor_memory_at_exit(ends);  // this block has no tensor memory
    sim::TensorOperation operation = {};
    operation.thread = block.grid.thread(0, 70).thread;
    operation.address = code + 6;
    memory.allocated_by = block.grid.thread(0, 64).thread;
    memory.allocated_at = code + 7;
    ends.tensor_memory = &memory;
    for (unsigned group : {0, 1, 2}) {
        for (unsigned bits : {0, 128}) {
            for (unsigned held : {0, 4}) {
                sim::checks::forget_findings();
                operation.copy_bits = bits;
                memory.group = group;
                memory.oldest = group ? &operation : nullptr;
                for (unsigned c = 0; c < 8; ++c) memory.allocation[c + 3] = c < held ? 2 : 0;
                tensor_memory_at_exit(ends);
                CHECK_EQUAL(finding_count(), (group == 1) + (held == 4));
                if (group == 1) {
                    const Finding& one = finding(0);
                    CHECK(!strcmp(name_of(one.kind), "tensor_product_at_exit") &&
                          check_of(one.kind) == Check::synccheck);
                    CHECK(one.side.thread == 70 && one.side.address == code + 6);
                    CHECK(unit::says(one, bits ? "tcgen05.cp" : "tcgen05.mma"));
                }
                if (held) {
                    const Finding& one = finding(finding_count() - 1);
                    CHECK(!strcmp(name_of(one.kind), "tensor_memory_not_freed") &&
                          check_of(one.kind) == Check::synccheck);
                    CHECK(one.side.thread == 64 && one.side.address == code + 7 && unit::number_in(one) == 4);
                }
            }
        }
    }
    ends.tensor_memory = nullptr;
}

CASE(tensor_memory_state_ends_with_its_block) {
    CHECK(!unit::leaks([] {
        Block block;
        for (unsigned i = 0; i < 1000; ++i) block.fence(0, false);
        for (unsigned i = 1; i < 2000; ++i) block.complete(i, 0);
        for (unsigned i = 0; i < 2000; ++i) block.transfer(0, true, 0, 1);
        block.multiply(2000);
    }));
}
