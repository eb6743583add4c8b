// The 32-byte sectors of the arena that a launch touches: one bit each for reads and for writes.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sim::checks {

constexpr unsigned sector_shift = 5;

struct WorkerState;

struct TouchedSectors {
    uint64_t* bits[2];  // read, written; null when out of memory
    size_t words;
    size_t first[2], last[2];  // range of words with bits

    void touch(bool write, size_t from, size_t to) {
        uint64_t* map = bits[write];
        if ((to >> 6) >= words || !map) return;
        if (first[write] > from >> 6) first[write] = from >> 6;
        if (last[write] < to >> 6) last[write] = to >> 6;
        size_t word = from >> 6;
        uint64_t head = ~uint64_t(0) << (from & 63);
        uint64_t tail = ~uint64_t(0) >> (63 - (to & 63));
        if (word == to >> 6) {
            map[word] |= head & tail;
            return;
        }
        map[word++] |= head;
        while (word < to >> 6) map[word++] = ~uint64_t(0);
        map[word] |= tail;
    }
};

struct SectorTotals {
    uint64_t read;
    uint64_t written;
    uint64_t either;
    // Sectors that the launch reads and does not write, and that nothing has touched since the report began. They must
    // come from DRAM: no cache can hold them, in whatever order the threads run.
    uint64_t first_read;
};

void begin_sectors(WorkerState& worker);
SectorTotals end_sectors();                              // returns the totals of all workers, and clears their bits
void drop_sectors();                                     // clears the bits of a launch that was rolled back
void remember_sectors(uintptr_t address, size_t bytes);  // called when the host writes there
void forget_sectors();

}  // namespace sim::checks
