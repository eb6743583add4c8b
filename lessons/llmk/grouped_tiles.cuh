// Tiles of a grouped matmul: y[r] = x[r] w[e]^T, where expert e has the rows offsets[e] ... offsets[e + 1] - 1. The sizes
// of the groups are in GPU memory, so each block computes its tiles itself. Day 18 derives it.
//
// Tiles are numbered expert by expert. Within an expert, a panel of kPanel rows of tiles goes column by column: blocks
// that work at the same time share tiles of w in the L2 cache.
#pragma once

#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

namespace llmk {

// A tile of y: rows `row` ... `end` - 1 of an expert (at most kRows), in column `column` of tiles.
struct GroupedTile {
    int expert, row, end, column;
};

// kRows: rows of a tile   offsets: [experts + 1]   first_tile: [experts + 1], shared memory   columns: tiles side by side
template <int kRows>
struct GroupedTiles {
    static constexpr int kPanel = 8;
    const int* offsets;
    const int* first_tile;
    int columns;
    int expert = 0;  // the expert of the tile that was found last

    // Compute first_tile, with one whole warp: the exclusive prefix sums of the numbers of tiles.
    static __device__ __forceinline__ void count(int* first_tile, const int* offsets, int experts, int columns) {
        const int lane = threadIdx.x % 32;
        int before = 0;
        for (int first = 0; first < experts; first += 32) {
            const int e = first + lane;
            int tiles = e < experts ? (offsets[e + 1] - offsets[e] + kRows - 1) / kRows * columns : 0;
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                const int other = __shfl_up_sync(kAllLanes, tiles, distance);
                if (lane >= distance) tiles += other;
            }
            if (e < experts) first_tile[e + 1] = before + tiles;
            before += __shfl_sync(kAllLanes, tiles, 31);
        }
        if (lane == 0) first_tile[0] = 0;
    }

    // Return tile i. A block asks for its tiles in increasing order, so it walks through the experts once.
    __device__ __forceinline__ GroupedTile find(int i) {
        while (i >= first_tile[expert + 1]) ++expert;
        const int first_row = offsets[expert], end = offsets[expert + 1];
        const int within = i - first_tile[expert], tile_rows = (end - first_row + kRows - 1) / kRows;
        const int panel = within / (kPanel * columns) * kPanel;  // the panel's first row of tiles
        const int high = min(kPanel, tile_rows - panel), place = within - panel * columns;
        const int row = first_row + (panel + place % high) * kRows;
        return {expert, row, min(row + kRows, end), place / high};
    }
};

// With one warp, store a tile of 16 x 64 elements from swizzled shared memory: only its first `rows` rows and `columns`
// columns. `stride`: elements from row to row at `to`.
template <typename T>
__device__ __forceinline__ void store_swizzled(T* to, const unsigned char* from, int rows, int columns, int stride) {
    for (int i = threadIdx.x % 32; i < 16 * 8; i += 32) {
        const int r = i / 8, chunk = i % 8;
        if (r < rows && chunk * 8 < columns) {
            *reinterpret_cast<uint4*>(to + static_cast<long long>(r) * stride + chunk * 8) =
                *reinterpret_cast<const uint4*>(from + r * 128 + (chunk ^ (r % 8)) * 16);
        }
    }
}

}  // namespace llmk
