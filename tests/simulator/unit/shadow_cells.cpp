// Tests of shadow cells: the accesses that they store, and the races that they detect.
#include "checks/core/shadow_cell.h"

#include "checks/synchronization/reader_set.h"
#include "found.h"
#include "grid.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

CASE(second_reader_is_a_thread_or_a_list) {
    SecondReader second = {};
    CHECK(!second.listed() && !second.block_scope() && second.site() == 0 && second.thread() == 0);
    for (bool scope : {false, true}) {
        second.set_block_scope(scope);
        second.set_only_loads(!scope);
        second.set(0xffff, 1023);
        CHECK(second.site() == 0xffff && second.thread() == 1023 && !second.listed() && second.block_scope() == scope);
        second.set_list(SecondReader::number_limit - 1);
        CHECK(second.number() == SecondReader::number_limit - 1 && second.listed() && second.block_scope() == scope);
        second.set(1, 2);
        CHECK(second.site() == 1 && second.thread() == 2 && !second.listed() && second.block_scope() == scope);
        CHECK(second.only_loads() == !scope && second.synchronizes() == scope);
        second.set_synchronizes();
    }
    CHECK_ABORTS((second.set(0, 1024), 0));
    CHECK_ABORTS((second.set_list(SecondReader::number_limit), 0));
}

CASE(cell_records_the_last_write_and_the_reads_since) {
    Floats x;
    Grid grid(1, 64);
    x.read(grid.thread(0, 5), 3);
    CHECK(x.cell(3).reads == grid.thread(0, 5).epoch && x.cell(3).write == never);
    x.write(grid.thread(0, 5), 3);
    CHECK(x.cell(3).write == grid.thread(0, 5).epoch);
    x.read(grid.thread(0, 5), 4);
    x.read(grid.thread(0, 6), 4);
    grid.syncthreads(0);
    x.write(grid.thread(0, 5), 4);
    CHECK(x.cell(4).write == grid.thread(0, 5).epoch && x.cell(4).reads == never);
    CHECK_FOUND("nothing");
}

CASE(reader_extent_is_lane_warp_block_or_more) {
    Floats x;
    Grid grid(2, 64);
    x.read(grid.thread(0, 5), 0);
    x.read(grid.thread(0, 5), 0);
    CHECK_EQUAL(x.cell(0).reads.sharing(), one_lane);
    x.read(grid.thread(0, 7), 0);
    CHECK(x.cell(0).reads.sharing() == one_warp && x.cell(0).reads.thread() == 5 && x.cell(0).second.thread() == 7);
    x.read(grid.thread(0, 40), 0);
    CHECK_EQUAL(x.cell(0).reads.sharing(), one_block);
    x.read(grid.thread(0, 6), 0);
    CHECK_EQUAL(x.cell(0).reads.sharing(), one_block);
    x.read(grid.thread(1, 5), 0);
    CHECK_EQUAL(x.cell(0).reads.sharing(), many_blocks);
    CHECK_FOUND("nothing");
}

CASE(readers_of_another_block_are_kept) {
    for (unsigned writer : {0u, 1u}) {
        Floats x;
        Grid grid(2, 64);
        for (unsigned block : {0u, 1u})
            for (unsigned thread = 0; thread < 64; ++thread) x.read(grid.thread(block, thread), 0);
        grid.syncthreads(writer);
        x.write(grid.thread(writer, 0), 0);
        CHECK_FOUND("between_blocks");
        // The cell stores a reader of block 0, but none of block 1. So only a write by block 1 has a thread to name.
        CHECK_EQUAL(finding(0).other.has_thread, writer == 1);
    }
}

CASE(readers_after_a_barrier_are_distinct_from_earlier_ones) {
    Floats x;
    Grid grid(1, 64);
    for (unsigned turn = 0; turn < 2; ++turn) {
        grid.syncthreads(0);
        for (unsigned thread = 0; thread < 64; ++thread) x.read(grid.thread(0, thread), 0);
    }
    x.write(grid.thread(0, 0), 0);
    CHECK_FOUND("within_block");  // the race is with the reader of a second warp
}

CASE(race_names_an_unordered_reader) {
    for (unsigned writer : {0u, 5u, 40u}) {
        Floats x;
        Grid grid(1, 64);
        for (unsigned thread = 0; thread < 64; ++thread) x.read(grid.thread(0, thread), 0);
        grid.syncwarp(0, writer / 32);
        x.write(grid.thread(0, writer), 0);
        CHECK_FOUND("within_block");
        CHECK_EQUAL(finding(0).other.thread, writer < 32 ? 32 : 0);
    }
}

CASE(unordered_read_after_a_write_is_a_race) {
    const struct {
        unsigned block, thread;
        const char* kind;
    } readers[] = {{0, 0, "nothing"}, {0, 1, "within_warp"}, {0, 33, "within_block"}, {1, 0, "between_blocks"}};
    for (auto& reader : readers) {
        Floats x;
        Grid grid(2, 64);
        x.write(grid.thread(0, 0), 0);
        x.read(grid.thread(0, 0), 1);  // fill the cell of another element
        x.read(grid.thread(reader.block, reader.thread), 0);
        CHECK_FOUND(reader.kind);
    }
}

CASE(unordered_write_after_a_read_is_a_race) {
    const struct {
        unsigned block, thread;
        const char* kind;
    } writers[] = {{0, 0, "nothing"}, {0, 1, "within_warp"}, {0, 33, "within_block"}, {1, 0, "between_blocks"}};
    for (auto& writer : writers) {
        Floats x;
        Grid grid(2, 64);
        x.read(grid.thread(0, 0), 0);
        x.write(grid.thread(writer.block, writer.thread), 0);
        CHECK_FOUND(writer.kind);
    }
}

CASE(write_is_checked_against_each_of_many_readers) {
    for (unsigned others = 1; others < 4; ++others) {
        const unsigned threads[] = {0, 9, 70};  // two lanes of one warp, and a lane of another
        Floats x;
        Grid grid(1, 96);
        for (unsigned i = 0; i < others; ++i) x.read(grid.thread(0, threads[i]), 0);
        x.write(grid.thread(0, 0), 0);
        CHECK_FOUND(others == 1 ? "nothing" : others == 2 ? "within_warp" : name_of(finding(0).kind));
        CHECK_EQUAL(finding_count(), others > 1);
    }
}

CASE(block_barrier_orders_only_its_own_block) {
    Floats x;
    Grid grid(2, 64);
    x.write(grid.thread(0, 0), 0);
    x.read(grid.thread(0, 3), 1);
    x.read(grid.thread(0, 40), 1);
    grid.syncthreads(0);
    grid.syncthreads(1);
    x.read(grid.thread(0, 40), 0);
    x.write(grid.thread(0, 41), 1);
    CHECK_FOUND("nothing");
    x.read(grid.thread(1, 40), 0);
    CHECK_FOUND("between_blocks");
}

CASE(syncwarp_orders_only_its_lanes) {
    Floats x;
    Grid grid(1, 64);
    x.write(grid.thread(0, 0), 0);
    grid.syncwarp(0, 0);
    x.read(grid.thread(0, 1), 0);
    CHECK_FOUND("nothing");
    x.read(grid.thread(0, 32), 0);
    CHECK_FOUND("within_block");
    Floats y;
    x.write(grid.thread(0, 2), 1);
    x.write(grid.thread(0, 3), 2);
    grid.syncwarp(0, 0, 0x3 << 2 | 1 << 8);  // synchronizes lanes 2, 3 and 8
    x.read(grid.thread(0, 8), 1);
    x.read(grid.thread(0, 2), 2);
    CHECK_EQUAL(finding_count(), 1);
    x.read(grid.thread(0, 9), 1);
    CHECK(finding_count() == 2 && !strcmp(name_of(finding(1).kind), "within_warp"));
}

CASE(next_launch_is_ordered_after_the_previous_one) {
    Floats x(false);
    {
        Grid grid(1, 32);
        x.write(grid.thread(0, 0), 0);
    }
    Grid grid(1, 32);
    x.read(grid.thread(0, 1), 0);
    x.write(grid.thread(0, 2), 1);
    CHECK_FOUND("nothing");
}

CASE(memory_is_uninitialized_before_a_write_or_an_atomic_operation) {
    Floats x(false);
    Grid grid(1, 64);
    x.read(grid.thread(0, 0), 0);
    CHECK_FOUND("uninitialized_read");
    CHECK(finding(0).bytes == 4 && finding(0).side.access == static_cast<uint8_t>(Access::read));
    x.write(grid.thread(0, 0), 1);
    x.read(grid.thread(0, 0), 1);
    x.atomic(grid.thread(0, 0), 2);  // the atomic operation reads the uninitialized value
    CHECK_EQUAL(finding(0).count, 1);
    CHECK_EQUAL(finding_count(), 2);
    x.read(grid.thread(0, 0), 2);  // the atomic operation has initialized it
    CHECK(finding_count() == 2 && finding(1).count == 1);
}

CASE(atomic_operations_race_with_ordinary_accesses_only) {
    Floats x;
    Grid grid(2, 64);
    for (unsigned block : {0u, 1u})
        for (unsigned thread : {0u, 1u, 40u}) x.atomic(grid.thread(block, thread), 0);
    CHECK_FOUND("nothing");
    auto other = [](size_t i) { return static_cast<Access>(finding(i).other.access); };
    x.read(grid.thread(0, 50), 0);
    CHECK(finding_count() == 1 && other(0) == Access::atomic);
    x.write(grid.thread(0, 51), 1);
    x.atomic(grid.thread(0, 52), 1);
    CHECK(finding_count() == 2 && other(1) == Access::write);
    x.atomic(grid.thread(0, 53), 3);
    x.write(grid.thread(0, 54), 3);
    CHECK(finding_count() == 2 && finding(1).count == 2);  // a race in reverse order is the same race
    x.read(grid.thread(0, 55), 4);
    x.write(grid.thread(0, 56), 4);
    CHECK(finding_count() == 3 && other(2) == Access::read);
    x.atomic(grid.thread(0, 0), 2, true);  // with block scope: not atomic with another block's operations
    x.atomic(grid.thread(0, 1), 2, true);
    CHECK_EQUAL(finding_count(), 3);
    x.atomic(grid.thread(1, 0), 2, true);
    CHECK(finding_count() == 4 && !strcmp(name_of(finding(3).kind), "between_blocks"));
}

// This includes a write of the same value, because the atomic operation may have changed the value.
CASE(atomic_store_is_kept_when_a_read_replaces_it) {
    Floats x;
    Grid grid(2, 64);
    x.atomic(grid.thread(0, 0), 0);
    grid.syncthreads(0);
    x.read(grid.thread(0, 50), 0);
    x.write(grid.thread(1, 0), 0);
    CHECK_EQUAL(finding_count(), 2);
    CHECK_EQUAL(finding(0).other.access, static_cast<uint8_t>(Access::atomic));
    CHECK_EQUAL(finding(1).other.access, static_cast<uint8_t>(Access::read));
}

CASE(unordered_write_of_the_same_value_is_no_race) {
    Floats x;
    Grid grid(1, 64);
    x.write(grid.thread(0, 0), 0);
    ThreadState& other = grid.thread(0, 1);
    AccessSite site = {};
    float value = 1;
    site.base = reinterpret_cast<uintptr_t>(&value);
    site.access = Access::write;
    site.space = Space::global;
    site.size_log2 = 2;
    site.shift = 2;
    site.window = initialized_window;
    site.cells = &x.cell(0);
    write_cell(other, x.cell(0), site, site.base);
    CHECK(other.pending);
    settle(other, 0, nullptr);
    CHECK(!other.pending);
    CHECK_FOUND("nothing");
    // To copy a structure, compilers call the hook of the write, then the hook of the read, and then copy. The next
    // access compares the values.
    for (bool changes : {false, true}) {
        x.cell(0).write = grid.thread(0, 0).epoch;
        write_cell(other, x.cell(0), site, site.base);
        settle(other, 0, &value);
        CHECK(other.pending);
        value += changes;
        settle(other, 0, &value);
        CHECK(!other.pending);
        CHECK_EQUAL(finding_count(), changes);
    }
}

// A structure's copy calls the hooks for all pieces of the write, then of the read. Then it copies.
CASE(pieces_of_a_structure_are_settled_after_the_whole_copy) {
    static const char code[8] = {};
    const unsigned all = 3, none = 4;
    for (unsigned changed : {0u, 1u, 2u, all, none}) {
        Floats x;
        Grid grid(1, 64);
        ThreadState &first = grid.thread(0, 0), &second = grid.thread(0, 40);
        auto at = [&](unsigned piece) { return reinterpret_cast<uintptr_t>(x.at(4 * piece)); };
        for (unsigned piece = 0; piece < 3; ++piece) on_access<4, true>(first, at(piece), code);
        for (unsigned piece = 0; piece < 3; ++piece) on_access<4, true>(second, at(piece), code);
        CHECK(second.pending);
        for (unsigned piece = 0; piece < 3; ++piece) on_access<2, false>(second, at(3) + 4 * piece, code + 1);
        CHECK(second.pending && finding_count() == 0);
        for (unsigned piece = 0; piece < 3; ++piece)
            if (changed == piece || changed == all) *x.at(4 * piece + 3) += 1;
        on_access<2, false>(second, at(3) + 12, code + 2);
        CHECK(!second.pending);
        CHECK_FOUND(changed == none ? "nothing" : "within_block");
        if (changed != none) CHECK_EQUAL(finding(0).place.offset, changed == all ? 0 : 16 * changed);
        CHECK(changed == none || (finding(0).count == (changed == all ? 3 : 1) && finding(0).bytes == 16));
    }
}

CASE(writes_in_a_loop_are_settled_when_it_ends) {
    static const char code[8] = {};
    constexpr unsigned many = (1u << 16) + 1;
    static float values[many];
    for (unsigned count : {4u, many}) {
        Floats x;
        Grid grid(1, 64);
        ThreadState& thread = grid.thread(0, 40);
        AccessSite site = {};
        site.address = code;
        site.size_log2 = 2;
        x.cell(0).write = grid.thread(0, 0).epoch;
        for (unsigned i = 0; i < count; ++i) {
            uintptr_t address = reinterpret_cast<uintptr_t>(values + i);
            if (i) settle(thread, address, code);
            note_write(thread, site, address, 4, x.cell(0).write, x.cell(0).write_site, Access::write);
            values[i] += 1;
        }
        CHECK_EQUAL(finding_count(), count == many);  // there are more pieces than can be pending
        settle(thread, 0, nullptr);
        CHECK(!thread.pending);
        CHECK_EQUAL(finding(0).count, count);
    }
}

CASE(atomic_loads_count_as_reads) {
    enum Operation { reads, loads, stores, writes };
    for (auto first : {reads, loads, stores, writes})
        for (auto second : {reads, loads, stores, writes})
            for (auto exact : {false, true}) {
                Floats x;
                Grid grid(3, 64);
                for (unsigned block = 0; exact && block < 3; ++block) become_exact(*grid.thread(block, 0).block);
                auto access = [&](Operation what, ThreadState& thread) {
                    if (what == reads) x.read(thread, 0);
                    if (what == loads) x.atomic_load(thread, 0);
                    if (what == stores) x.atomic(thread, 0);
                    if (what == writes) x.write(thread, 0);
                };
                bool plain = first == reads || first == writes || second == reads || second == writes;
                bool changes = first >= stores || second >= stores;
                access(first, grid.thread(0, 1));
                access(second, grid.thread(0, 40));
                CHECK_FOUND(plain && changes ? "within_block" : "nothing");
                forget_findings();
                // A third access conflicts with one of the first two.
                access(writes, grid.thread(1, 0));
                CHECK(finding_count() > 0);
                if (plain) continue;
                for (auto third : {reads, loads, stores}) {
                    Floats y;
                    auto again = [&](Operation what, ThreadState& thread) {
                        what == loads ? y.atomic_load(thread, 0) : y.atomic(thread, 0);
                    };
                    again(first, grid.thread(0, 1));
                    again(second, grid.thread(0, 40));
                    forget_findings();
                    if (third == reads)
                        y.read(grid.thread(2, 0), 0);
                    else
                        again(third, grid.thread(2, 0));
                    CHECK_EQUAL(finding_count(), third == reads && (first == stores || second == stores));
                }
            }
}

CASE(polling_reads_do_not_count_as_stores) {
    // Thread 1 stores and then reads. If another thread loads in between, there is no conflict; if it writes, there is.
    for (bool writes : {false, true}) {
        Floats x;
        Grid grid(1, 64);
        x.atomic(grid.thread(0, 1), 0);
        x.atomic_load(grid.thread(0, 40), 0);
        if (writes)
            x.write(grid.thread(0, 1), 0);
        else
            x.read(grid.thread(0, 1), 0);
        CHECK_FOUND(writes ? "within_block" : "nothing");
    }
}

CASE(clock_limit_bounds_the_ordered_accesses) {
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 0);
    for (uint32_t time : {5u, Epoch::time_limit - 1, Epoch::time_limit, Epoch::time_pending, ~0u}) {
        set_time(thread, time);
        CHECK_EQUAL(thread.time(), time < Epoch::time_limit ? time : Epoch::time_limit);
        CHECK(!thread.epoch.pending());
        thread.block->barrier_time = time;
        set_floors(thread);
        const EpochRange& ordered = thread.floors[shared_window];
        uint32_t serial = thread.block->serial;
        CHECK_EQUAL(ordered.contains(Epoch(serial, 4)), true);
        CHECK_EQUAL(ordered.contains(Epoch(serial, 5)), time > 5);
        CHECK_EQUAL(ordered.contains(Epoch(serial, Epoch::time_limit)), time >= Epoch::time_limit);
        CHECK(!ordered.contains(Epoch(serial, Epoch::time_pending)));
    }
}

CASE(set_members_are_ordered_one_by_one) {
    Floats x;
    Grid grid(1, 96);
    grid.syncwarp(0, 0, 0xff);  // after a partial barrier, reader sets list every member
    for (unsigned thread : {8u, 9u, 40u, 70u}) x.read(grid.thread(0, thread), 0);
    CHECK(members_of(x.cell(0)) != nullptr);
    grid.syncwarp(0, 0);
    grid.syncwarp(0, 1);
    Member member = {};
    CHECK(find_unordered(grid.thread(0, 0), *members_of(x.cell(0)), every_kind, nullptr, &member));
    CHECK(member.epoch.thread() == 40 || member.epoch.thread() == 70);
    grid.syncthreads(0);
    CHECK(!find_unordered(grid.thread(0, 0), *members_of(x.cell(0)), every_kind, nullptr, &member));
    x.write(grid.thread(0, 0), 0);
    CHECK(!members_of(x.cell(0)));
    CHECK_FOUND("nothing");
}
