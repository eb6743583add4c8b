// memcheck of a thread's local arrays: accesses to the red zones around them (sim/local_arrays.h).
#include "sim/local_arrays.h"

#include <initializer_list>

#include "checks/core/access.h"
#include "checks/report/findings.h"

namespace sim::checks {

namespace {

uint32_t word_at(uintptr_t address) { return *reinterpret_cast<const uint32_t*>(address); }

// Finds the local array whose red zone contains this word. Fills in `array` and returns the array's name, or null.
const char* find_array(const Fiber& fiber, uintptr_t word, Region& array) {
    uintptr_t low = reinterpret_cast<uintptr_t>(fiber.low), top = reinterpret_cast<uintptr_t>(fiber.top);
    constexpr uintptr_t zone = 4 * red_words;
    uintptr_t begin = word, end = word + 4;
    while (begin >= low + 4 && end - begin <= zone && word_at(begin - 4) == red_word) begin -= 4;
    while (end + 4 <= top && end - begin <= zone && word_at(end) == red_word) end += 4;
    if (end - begin != zone || begin < low + sizeof(RedOwner) || end + sizeof(RedOwner) > top) return nullptr;
    for (bool behind : {true, false}) {
        auto& owner = *reinterpret_cast<const RedOwner*>(behind ? end : begin - sizeof(RedOwner));
        uint64_t bytes = ~owner.check ^ owner.name ^ (behind ? behind_it : 0);
        if (owner.name == 0 || bytes == 0 || bytes > top - low) continue;
        array = {};
        array.base = behind ? (begin - bytes) & ~uintptr_t(3) : end;
        array.bytes = bytes;
        array.kind = RegionKind::local_array;
        return reinterpret_cast<const char*>(owner.name);
    }
    return nullptr;
}

Region make_unknown() {
    Region region = {};
    region.kind = RegionKind::local_array;
    return region;
}

}  // namespace

const Region unknown_local = make_unknown();

void red_access(ThreadState& thread, uintptr_t address, size_t bytes, Access access, const void* code) {
    Region array;
    for (uintptr_t word :
         {address & ~uintptr_t(3), (address + bytes - 1) & ~uintptr_t(3), (address & ~uintptr_t(3)) + 4}) {
        if (word_at(word) != red_word) continue;
        const char* name = find_array(*thread.thread->fiber, word, array);
        if (!name || array.contains(address, bytes)) continue;
        if (sandbox::confined)
            // a submission can forge a red zone with any address as the name
            sandbox::check(name, 1, false, code, SIM_FRAME);
        strncpy(array.name, name, sizeof array.name - 1);
        Finding finding = finding_at(FindingKind::out_of_bounds, thread, code);
        finding.set_access(access, bytes, &array, address);
        finding.payload = Address{address};
        add_finding(finding);
        return;
    }
}

}  // namespace sim::checks
