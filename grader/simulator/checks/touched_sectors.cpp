#include "checks/touched_sectors.h"

#include <sys/mman.h>

#include "checks/state.h"

namespace sim::checks {

namespace {

// Touched since the report began, by earlier launches or by the host: as many words as a worker has. Null: not asked for yet.
struct Remembered {
    uint64_t* bits;
    size_t words, first, last;
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
        remembered = {new_bits(words), words, words, 0};
    }
    return remembered.bits != nullptr;
}

void free_sectors(TouchedSectors& touched) {
    for (uint64_t* bits : touched.bits)
        if (bits) munmap(bits, touched.words * sizeof(uint64_t));
}

}  // namespace

void begin_sectors(WorkerState& worker) {
    TouchedSectors& touched = *worker.sectors;
    size_t words = words_of_arena();
    if (touched.words != words) {
        free_sectors(touched);
        touched.words = words;
        for (uint64_t*& bits : touched.bits) bits = new_bits(words);
    }
    for (unsigned w = 0; w < 2; ++w) {
        touched.first[w] = words;
        touched.last[w] = 0;
    }
}

SectorTotals end_sectors() {
    static SectorTotals totals;
    static TouchedSectors* all;
    totals = {};
    all = nullptr;
    // Everything into the first worker's bits, which are then counted and cleared.
    each_worker([](WorkerState& worker) {
        TouchedSectors* touched = worker.sectors;
        if (!touched) return;
        if (!all) {
            all = touched;
            return;
        }
        for (unsigned w = 0; w < 2; ++w) {
            if (touched->first[w] > touched->last[w]) continue;
            for (size_t i = touched->first[w]; i <= touched->last[w]; ++i) all->bits[w][i] |= touched->bits[w][i];
            memset(touched->bits[w] + touched->first[w], 0,
                   (touched->last[w] - touched->first[w] + 1) * sizeof(uint64_t));
            if (all->first[w] > touched->first[w]) all->first[w] = touched->first[w];
            if (all->last[w] < touched->last[w]) all->last[w] = touched->last[w];
            touched->first[w] = touched->words;
            touched->last[w] = 0;
        }
    });
    if (!all) return totals;
    size_t first = all->first[0] < all->first[1] ? all->first[0] : all->first[1];
    size_t last = all->last[0] > all->last[1] ? all->last[0] : all->last[1];
    bool remembers = begin_remembering() && first <= last;
    if (remembers) {
        if (remembered.first > first) remembered.first = first;
        if (remembered.last < last) remembered.last = last;
    }
    for (size_t i = first; i <= last && i < all->words; ++i) {
        uint64_t read = all->bits[0][i], written = all->bits[1][i];
        totals.read += static_cast<uint64_t>(__builtin_popcountll(read));
        totals.written += static_cast<uint64_t>(__builtin_popcountll(written));
        totals.either += static_cast<uint64_t>(__builtin_popcountll(read | written));
        if (remembers) {
            uint64_t& before = remembered.bits[i];
            totals.first_read += static_cast<uint64_t>(__builtin_popcountll(read & ~written & ~before));
            before |= read | written;
        }
        all->bits[0][i] = all->bits[1][i] = 0;
    }
    for (unsigned w = 0; w < 2; ++w) {
        all->first[w] = all->words;
        all->last[w] = 0;
    }
    return totals;
}

void drop_sectors() {
    each_worker([](WorkerState& worker) {
        TouchedSectors& touched = *worker.sectors;
        for (unsigned w = 0; w < 2; ++w) {
            if (touched.bits[w] && touched.first[w] <= touched.last[w])
                memset(touched.bits[w] + touched.first[w], 0,
                       (touched.last[w] - touched.first[w] + 1) * sizeof(uint64_t));
            touched.first[w] = touched.words;
            touched.last[w] = 0;
        }
    });
}

void remember_sectors(uintptr_t address, size_t bytes) {
    ArenaRange arena = arena_range();
    uintptr_t base = reinterpret_cast<uintptr_t>(arena.base);
    if (!bytes || address < base || address - base >= arena.bytes || !begin_remembering()) return;
    size_t from = (address - base) >> sector_shift, to = (address - base + bytes - 1) >> sector_shift;
    TouchedSectors touched = {
        {remembered.bits, nullptr}, remembered.words, {remembered.first, 0}, {remembered.last, 0}};
    touched.touch(false, from, to);
    remembered.first = touched.first[0];
    remembered.last = touched.last[0];
}

void forget_sectors() {
    if (remembered.bits) munmap(remembered.bits, remembered.words * sizeof(uint64_t));
    remembered = {};
}

}  // namespace sim::checks
