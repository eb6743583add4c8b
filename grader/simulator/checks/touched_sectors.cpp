#include "checks/touched_sectors.h"

#include <sys/mman.h>

#include "checks/state.h"

namespace sim::checks {

namespace {

void free_sectors(TouchedSectors& touched) {
    for (uint64_t* bits : touched.bits)
        if (bits) munmap(bits, touched.words * sizeof(uint64_t));
}

}  // namespace

void begin_sectors(WorkerState& worker) {
    TouchedSectors& touched = *worker.sectors;
    size_t words = (arena_range().bytes >> (sector_shift + 6)) + 1;
    if (touched.words != words) {
        free_sectors(touched);
        touched.words = words;
        for (uint64_t*& bits : touched.bits) {
            void* memory = mmap(nullptr, words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            bits = memory == MAP_FAILED ? nullptr : static_cast<uint64_t*>(memory);
        }
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
    for (size_t i = first; i <= last && i < all->words; ++i) {
        uint64_t read = all->bits[0][i], written = all->bits[1][i];
        totals.read += static_cast<uint64_t>(__builtin_popcountll(read));
        totals.written += static_cast<uint64_t>(__builtin_popcountll(written));
        totals.either += static_cast<uint64_t>(__builtin_popcountll(read | written));
        all->bits[0][i] = all->bits[1][i] = 0;
    }
    for (unsigned w = 0; w < 2; ++w) {
        all->first[w] = all->words;
        all->last[w] = 0;
    }
    return totals;
}

}  // namespace sim::checks
