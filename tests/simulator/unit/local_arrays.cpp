// Tests of red zones (guard bytes) around local arrays: an access to a zone names the array that owns the zone.
#include "sim/local_arrays.h"

#include "checks/core/access.h"
#include "runtime/fiber.h"
#include "submission_sandbox/sandbox.h"
#include "as_thread.h"
#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using sim::red_word;
using unit::Grid;

namespace {

const char code[4] = {};
const char before[] = "before", array[] = "array";

// A part of a stack that contains arrays and red zones in the layout of sim/local_arrays.h.
struct Words {
    // Places are offsets in words. `lay` returns the place where the array begins.
    void zone(unsigned place, unsigned count = sim::red_words) {
        for (unsigned i = 0; i < count; ++i) words[place + i] = red_word;
    }
    // Writes the record that names a zone's array. The zone follows the array if `behind`, and precedes it otherwise.
    void owner(unsigned place, const char* name, uint64_t bytes, bool behind) {
        sim::RedOwner owner;
        owner.name = reinterpret_cast<uintptr_t>(name);
        owner.check = ~owner.name ^ bytes ^ (behind ? sim::behind_it : 0);
        memcpy(words + place, &owner, sizeof owner);
    }
    unsigned lay(unsigned place, const char* name, uint64_t bytes) {
        unsigned begin = place + 4 + sim::red_words, end = begin + static_cast<unsigned>((bytes + 3) / 4);
        owner(place, name, bytes, false);
        zone(place + 4);
        zone(end);
        owner(end + sim::red_words, name, bytes, true);
        return begin;
    }
    alignas(16) uint32_t words[256] = {};
};

// A thread's stack, and accesses to it.
struct Stack : Words {
    Stack() : grid(1, 32) {
        fiber.low = reinterpret_cast<char*>(words);
        fiber.top = reinterpret_cast<char*>(words + 256);
        kept = grid.block(0).threads[7].fiber;
        grid.block(0).threads[7].fiber = &fiber;
    }
    ~Stack() { grid.block(0).threads[7].fiber = kept; }
    // Makes an access, and returns whether it causes a finding.
    bool access(size_t byte, size_t bytes = 4, Access access = Access::read) {
        forget_findings();
        address = reinterpret_cast<uintptr_t>(words) + byte;
        if (may_be_red(address, bytes)) red_access(grid.thread(0, 7), address, bytes, access, code);
        return finding_count() != 0;
    }
    bool missed(const char* name, uint64_t bytes, long offset) const {
        const Finding& one = finding(0);
        return !strcmp(name_of(one.kind), "out_of_bounds") && check_of(one.kind) == Check::memcheck &&
               unit::number_in(one) == address && one.place.kind == RegionKind::local_array &&
               !strcmp(one.place.name, name) && one.place.bytes == bytes && one.place.offset == offset &&
               one.place.element_bytes == 0 && one.place.ndim == 0 && !*one.place.dtype && one.side.address == code &&
               one.side.thread == 7;
    }
    Grid grid;
    sim::Fiber fiber = {};
    sim::Fiber* kept;
    uintptr_t address = 0;
};

}  // namespace

CASE(access_beside_a_local_array_names_the_array) {
    for (uint64_t bytes : {4u, 6u, 40u, 41u, 43u, 64u}) {
        Stack stack;
        const unsigned begin = stack.lay(20, array, bytes);
        const long end = static_cast<long>((bytes + 3) / 4 * 4);
        for (Access access : {Access::read, Access::write}) {
            CHECK(stack.access(4 * begin - 4, 4, access) && stack.missed(array, bytes, -4));
            CHECK(finding(0).side.access == static_cast<uint8_t>(access) && finding(0).bytes == 4);
        }
        CHECK(stack.access(4 * begin - 48) && stack.missed(array, bytes, -48));
        CHECK(stack.access(4 * begin + end) && stack.missed(array, bytes, end));
        CHECK(stack.access(4 * begin + end + 44) && stack.missed(array, bytes, end + 44));
        CHECK(stack.access(4 * begin + bytes, 1) && stack.missed(array, bytes, static_cast<long>(bytes)));
        CHECK(finding(0).bytes == 1);
        for (unsigned byte = 0; byte < bytes; ++byte) CHECK(!stack.access(4 * begin + byte, 1));
        // The records that name the zones' arrays are not part of the zones.
        CHECK(!stack.access(4 * begin - 52) && !stack.access(4 * begin + end + 48));
    }
}

CASE(long_array_name_is_truncated) {
    static char name[100];
    memset(name, 'x', sizeof name - 1);
    Stack stack;
    const unsigned begin = stack.lay(20, name, 16);
    CHECK(stack.access(4 * begin - 4) && strlen(finding(0).place.name) == sizeof finding(0).place.name - 1);
    CHECK(!*finding(0).place.dtype);
}

CASE(confined_kernel_cannot_forge_an_array_name) {
    sim::events::reset();
    char* foreign = static_cast<char*>(malloc(16));
    strcpy(foreign, "secret");
    for (bool confined : {false, true}) {
        for (const char* name : {array, static_cast<const char*>(foreign)}) {
            Grid grid(1, 32);
            ThreadState& thread = grid.thread(0, 7);
            int error = unit::as_thread(thread, [&] {
                Words own;
                const unsigned begin = own.lay(20, name, 16);
                sim::sandbox::confined = confined;
                red_access(thread, reinterpret_cast<uintptr_t>(own.words + begin - 1), 4, Access::read, code);
            });
            sim::sandbox::confined = false;
            const bool refused = confined && name == foreign;
            CHECK_EQUAL(error, refused ? 700 : 0);
            CHECK(finding_count() == 1 &&
                  !strcmp(name_of(finding(0).kind), refused ? "not_its_memory" : "out_of_bounds"));
            CHECK(refused || !strcmp(finding(0).place.name, name));
        }
    }
    free(foreign);
}

CASE(access_that_begins_inside_and_ends_outside_is_reported) {
    Stack stack;
    const unsigned begin = stack.lay(20, array, 32);
    CHECK(stack.access(4 * begin + 28, 8) && stack.missed(array, 32, 28) && finding(0).bytes == 8);
    CHECK(stack.access(4 * begin + 24, 16) && stack.missed(array, 32, 24) && finding(0).bytes == 16);
    CHECK(stack.access(4 * begin - 4, 8) && stack.missed(array, 32, -4));
    CHECK(!stack.access(4 * begin + 24, 8) && !stack.access(4 * begin + 16, 16));
    // An array may contain the same words as a red zone.
    for (unsigned i = 0; i < 8; ++i) stack.words[begin + i] = red_word;
    stack.words[begin + 3] = 0;
    for (unsigned i = 0; i < 8; ++i) CHECK(!stack.access(4 * (begin + i)));
}

CASE(access_between_two_arrays_is_past_the_end_of_the_first) {
    Stack stack;
    stack.zone(40);
    stack.owner(52, before, 24, true);  // this array ends at word 40
    stack.owner(36, array, 32, false);  // this array begins at word 52
    CHECK(stack.access(4 * 45) && stack.missed(before, 24, 24 + 20));
    stack.words[52] = stack.words[53] = 0;  // overwrite the record's pointer: the array `before` is gone
    CHECK(stack.access(4 * 45) && stack.missed(array, 32, -28));
    stack.owner(52, nullptr, 24, true);  // a record without a name belongs to no array
    CHECK(stack.access(4 * 45) && stack.missed(array, 32, -28));
    for (uint64_t bytes : {uint64_t(0), uint64_t(1025), ~uint64_t(0)}) {
        stack.owner(36, array, bytes, false);
        CHECK(!stack.access(4 * 45));
    }
    stack.owner(36, array, 1024, false);
    CHECK(stack.access(4 * 45));
}

CASE(red_zone_owner_is_valid_on_its_side_only) {
    for (bool behind : {false, true}) {
        Stack stack;
        stack.zone(40);
        stack.owner(behind ? 36 : 52, before, 24, behind);  // the record is on the wrong side of the zone
        CHECK(!stack.access(4 * 45));
        stack.owner(behind ? 52 : 36, before, 24, behind);
        CHECK(stack.access(4 * 45));
    }
}

CASE(red_zone_of_another_length_is_ignored) {
    for (unsigned length = 1; length < 30; ++length) {
        Stack stack;
        stack.zone(40, length);
        stack.owner(40 + length, array, 16, true);
        for (unsigned i : {0u, length / 2, length - 1})
            CHECK_EQUAL(stack.access(4 * (40 + i)), length == sim::red_words);
    }
}

CASE(red_zone_and_owner_are_adjacent_to_the_array) {
    for (unsigned place : {3u, 4u, 240u, 241u, 244u}) {
        Stack stack;
        stack.zone(place);
        if (place >= 4) stack.owner(place - 4, array, 16, false);
        if (place + 16 <= 256) stack.owner(place + 12, array, 16, true);
        CHECK_EQUAL(stack.access(4 * place), place == 4 || place == 240);
        CHECK_EQUAL(stack.access(4 * place + 44), place == 4 || place == 240);
    }
}
