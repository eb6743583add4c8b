// Pending wgmma operations. Each warp of a warpgroup has its own part: 16 rows of A and of the accumulators.
//
// A wgmma is performed as late as the program allows: when the warp waits for its group. Its operands in shared memory
// are read at that time. Its accumulators hold NaNs from its start until the last wgmma that uses them is performed.
#pragma once

#include "sim/wgmma.h"
#include "thread.h"

namespace sim {

constexpr unsigned warp_rows = 16, max_columns = 256, max_registers = 128;

// A warp's accumulators while wgmma are pending: 32 bits each, where f16 accumulators are kept as floats.
struct Tile {
    uint32_t value[warp_rows][max_columns];
    Wgmma kind;  // kind of all wgmma of the tile
    uint32_t* variables[lanes_per_warp][max_registers];
    unsigned operations;  // number of pending operations
    Tile* next;
};

struct WgmmaOperation {
    Wgmma kind;
    uint64_t a, b;  // matrix descriptors
    uint32_t a_registers[lanes_per_warp][4];
    bool adds;
    Tile* tile;
    unsigned group;
    uint64_t number;  // number in its warpgroup, from 1
    const void* address;
    WgmmaOperation* next;
};

struct DecodedB;

struct PendingWgmma {
    WgmmaOperation* oldest;
    WgmmaOperation** end;  // position at which the next operation is appended
    Tile* tiles;           // tiles in use
    Tile* free_tiles;
    WgmmaOperation* free_operations;
    unsigned group;     // the group being filled
    uint64_t number;    // number of the last wgmma
    DecodedB* decoded;  // B of the last performed wgmma, decoded; in the warpgroup's first warp
};

// In wgmma_multiply.cpp: adds A * B to the tile, for the rows of one warp (0 to 3) of its warpgroup.
void perform(const WgmmaOperation& operation, unsigned warp, DecodedB& decoded);
DecodedB* make_decoded();  // returns null when out of memory

}  // namespace sim
