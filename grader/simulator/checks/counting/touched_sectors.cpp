#include "checks/counting/touched_sectors.h"

#include <sys/mman.h>

#include <algorithm>

#include "checks/core/state.h"

namespace sim::checks {

namespace {

// The sectors that earlier launches or the host have touched since the report began. `bits` is null until needed, and
// then as large as the `bits` of a worker.
struct Remembered {
    uint64_t* bits;
    size_t words;
};
Remembered remembered = {};

uint64_t* new_bits(size_t words) {
    void* memory = mmap(nullptr, words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<uint64_t*>(memory);
}

size_t words_of_arena() { return (arena_range().bytes >> (sector_shift + 6)) + 1; }

bool begin_remembering() {
    if (remembered.words != words_of_arena()) {
        forget_sectors();
        size_t words = words_of_arena();
        remembered = {new_bits(words), words};
    }
    return remembered.bits != nullptr;
}

// Adds the sectors that another worker has touched.
void add(TouchedSectors& all, const TouchedSectors& more) {
    for (unsigned w = 0; w < 2; ++w) {
        for (size_t i = more.first[w]; i <= more.last[w]; ++i) all.bits[w][i] |= more.bits[w][i];
        all.first[w] = std::min(all.first[w], more.first[w]);
        all.last[w] = std::max(all.last[w], more.last[w]);
    }
}

void clear(TouchedSectors& touched) {
    for (unsigned w = 0; w < 2; ++w) {
        for (size_t i = touched.first[w]; i <= touched.last[w]; ++i) touched.bits[w][i] = 0;
        touched.first[w] = touched.words;
        touched.last[w] = 0;
    }
}

}  // namespace

void begin_sectors(WorkerState& worker) {
    TouchedSectors& touched = *worker.sectors;
    size_t words = words_of_arena();
    if (touched.words == words) return;
    for (uint64_t* bits : touched.bits)
        if (bits) munmap(bits, touched.words * sizeof(uint64_t));
    touched = {{new_bits(words), new_bits(words)}, words, {words, words}, {}};
}

SectorTotals end_sectors() {
    static SectorTotals totals;
    static TouchedSectors* all;
    totals = {};
    all = nullptr;
    // Merges everything into the first worker's bits, which are then counted and cleared.
    each_worker([](WorkerState& worker) {
        if (!all) {
            all = worker.sectors;
            return;
        }
        add(*all, *worker.sectors);
        clear(*worker.sectors);
    });
    if (!all) return totals;
    size_t first = std::min(all->first[0], all->first[1]), last = std::max(all->last[0], all->last[1]);
    bool remembers = begin_remembering();
    for (size_t i = first; i <= last; ++i) {
        uint64_t read = all->bits[0][i], written = all->bits[1][i];
        totals.read += static_cast<uint64_t>(__builtin_popcountll(read));
        totals.written += static_cast<uint64_t>(__builtin_popcountll(written));
        totals.either += static_cast<uint64_t>(__builtin_popcountll(read | written));
        if (!remembers) continue;
        uint64_t& before = remembered.bits[i];
        totals.first_read += static_cast<uint64_t>(__builtin_popcountll(read & ~written & ~before));
        before |= read | written;
    }
    clear(*all);
    return totals;
}

void drop_sectors() {
    each_worker([](WorkerState& worker) { clear(*worker.sectors); });
}

void remember_sectors(uintptr_t address, size_t bytes) {
    ArenaRange arena = arena_range();
    uintptr_t offset = address - reinterpret_cast<uintptr_t>(arena.base);
    if (!bytes || offset >= arena.bytes || !begin_remembering()) return;
    TouchedSectors touched = {{remembered.bits, nullptr}, remembered.words, {}, {}};
    touched.touch(false, offset >> sector_shift, (offset + bytes - 1) >> sector_shift);
}

void forget_sectors() {
    if (remembered.bits) munmap(remembered.bits, remembered.words * sizeof(uint64_t));
    remembered = {};
}

}  // namespace sim::checks
