// Products of wgmma that are under way. Each warp of a warpgroup has its own: 16 rows of A and of the accumulators.
//
// A product is performed as late as the program allows: when the warp waits for its group. Its operands in shared memory are
// read then, and its accumulators hold NaNs from its beginning until the last product that uses them is performed.
#pragma once

#include "sim/wgmma.h"
#include "thread.h"

namespace sim {

constexpr unsigned warp_rows = 16, most_columns = 256, most_registers = 128;

// A warp's accumulators while products are under way: 32 bits each, a float for f16, too.
struct Tile {
    uint32_t value[warp_rows][most_columns];
    Wgmma kind;  // of all its products
    uint32_t* variables[lanes_per_warp][most_registers];
    unsigned products;  // under way
    Tile* next;
};

struct Product {
    Wgmma kind;
    uint64_t a, b;  // descriptors
    uint32_t a_registers[lanes_per_warp][4];
    bool adds;
    Tile* tile;
    unsigned group;
    uint64_t number;  // counted for each warpgroup, from 1
    const void* address;
    Product* next;
};

struct DecodedB;

struct Products {
    Product* oldest;
    Product** end;  // where the next one goes
    Tile* tiles;    // in use
    Tile* free_tiles;
    Product* free_products;
    unsigned group;     // the one being filled
    uint64_t number;    // of the last product
    DecodedB* decoded;  // of the warpgroup's first warp: the B of the last product that was performed
};

// wgmma_multiply.cpp: adds the product to the tile, for the rows of a warp (0 to 3) of its warpgroup.
void perform(const Product& product, unsigned warp, DecodedB& decoded);
DecodedB* make_decoded();  // null when memory is short

}  // namespace sim
