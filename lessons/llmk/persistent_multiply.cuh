// Day 16's persistent kernel: multipliers compute the dot products of a block's rows and an input.
#pragma once

#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/persistent_work.cuh"
#include "llmk/reduce.cuh"

namespace llmk::persistent {

// Multiply this warp's tiles by its part of the input, on tensor cores, two tiles at a time in one pass.
//
// An mma.sync multiplies 16 rows by 8 columns, but a pass has only two rows of weights and one column of input. So each
// group of four lanes, 4 g ... 4 g + 3, puts its elements into its own row and column of the operands: rows g and g + 8
// of operand A are the group's elements of the first and second tile, and column g of operand B is the group's elements
// of the input. Results in row g or g + 8 and column g belong to one group, and only these are used: an eighth of the
// tensor cores' arithmetic. This still needs only a quarter of the instructions of unpacking, multiplying and adding on
// the CUDA cores.
template <typename T, int VECTORS>
__device__ void multiply(const Work& work, const Shared& shared, Turn turn, Turn& ring) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp & ((1 << work.shift) - 1);
    const int begin = work.part(part), count = work.part(part + 1) - begin;
    const int mine = (warp >> work.shift) * work.vectors + begin;  // this warp's first vector in a stage
    uint4 input[VECTORS];
    llmk::mbarrier_wait_parity(shared.ready + turn.place, turn.parity);
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {  // lanes past the end of a part multiply by zeros
        input[v] = make_uint4(0, 0, 0, 0);
        if (v * 32 + lane < count)
            input[v] = static_cast<const uint4*>(shared.input(turn.place))[begin + v * 32 + lane];
    }
    llmk::mbarrier_wait_parity(shared.given + turn.place, turn.parity ^ 1);
    float* const sums_of_tiles = shared.sums_of(turn.place);
    for (int tile = warp; tile - warp < work.tiles; tile += 2 * kWarps) {
        Turn slots[2] = {ring, ring};
        const bool two_slots = tile - warp + kWarps < work.tiles, two = tile + kWarps < work.tiles;
        llmk::mbarrier_wait_parity(shared.full + ring.place, ring.parity);
        ring.next(shared.slots);
        if (two_slots) {
            slots[1] = ring;
            llmk::mbarrier_wait_parity(shared.full + ring.place, ring.parity);
            ring.next(shared.slots);
        }
        if (tile < work.tiles) {
            const auto tile_in = [&](int slot) {
                return reinterpret_cast<const uint4*>(shared.ring + slot * shared.slot_bytes) + mine;
            };
            const uint4 *first = tile_in(slots[0].place), *second = two ? tile_in(slots[1].place) : first;
            float sums[2][4] = {};  // two accumulators, so that one mma does not wait for the other
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                const int at = min(v * 32 + lane, count - 1);
                const uint4 x = input[v], a = first[at], b = second[at];
                llmk::mma_m16n8k16<T>(sums[0], {a.x, b.x, a.y, b.y}, x.x, x.y);
                llmk::mma_m16n8k16<T>(sums[1], {a.z, b.z, a.w, b.w}, x.z, x.w);
            }
            // Elements 0 and 1 of lane 4 g + t are row g, columns 2 t and 2 t + 1. So lane 4 g + g / 2 holds the
            // diagonal element of row g.
            float of_tiles[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float even = sums[0][2 * i] + sums[1][2 * i], odd = sums[0][2 * i + 1] + sums[1][2 * i + 1];
                of_tiles[i] = lane / 4 % 2 == 0 ? even : odd;
#pragma unroll
                for (int distance : {4, 9, 18}) {  // lane distances from row g to rows g + 1, g + 2, g + 4
                    of_tiles[i] += __shfl_xor_sync(llmk::kAllLanes, of_tiles[i], distance);
                }
            }
            if (lane == 0) sums_of_tiles[tile] = of_tiles[0];
            if (lane == 0 && two) sums_of_tiles[tile + kWarps] = of_tiles[1];
        }
        __syncwarp();
        if (lane == 0) llmk::mbarrier_arrive(shared.empty + slots[0].place);
        if (lane == 0 && two_slots) llmk::mbarrier_arrive(shared.empty + slots[1].place);
    }
    if (lane == 0) llmk::mbarrier_arrive(shared.summed + turn.place);
}

template <typename T>
__device__ void multiply(const Work& work, const Shared& shared, Turn turn, Turn& ring) {
    const int longest = (work.vectors + (1 << work.shift) - 1) >> work.shift;
    switch ((longest + 31) / 32) {
        case 1:
            return multiply<T, 1>(work, shared, turn, ring);
        case 2:
            return multiply<T, 2>(work, shared, turn, ring);
        case 3:
            return multiply<T, 3>(work, shared, turn, ring);
        case 4:
            return multiply<T, 4>(work, shared, turn, ring);
        default:
            return multiply<T, kMostVectors>(work, shared, turn, ring);
    }
}

}  // namespace llmk::persistent
