// Day 16's persistent kernel: the rows of one block in each phase, and its shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/persistent_model.cuh"

namespace llmk::persistent {

// The work of one block in a phase. A *tile* is one part of one row: tile i is part i % splits of row i / splits. Warps
// take tiles in turn: kWarps neighboring tiles, which are contiguous in the matrix, are one stage of the ring.
struct Work {
    long long weights;        // offset of its first row in all weights
    int first, rows;          // linear, embed: rows of the matrix
    int vectors;              // vectors per row: 8 columns, 16 bytes each
    int shift, tiles;         // 1 << shift parts per row
    int kind, input, output;  // copied from the phase:
    int row_group, norm, norm_bias, bias, source, layer, publishes;

    // Offset of a part of a row, in vectors.
    __device__ __forceinline__ int part(int number) const { return vectors * number >> shift; }
};

// The shared memory of a block. Phases alternate between two buffers for inputs and two for sums.
struct Shared {
    unsigned char* ring;     // [slots, slot_bytes]
    uint64_t *full, *empty;  // [kMostSlots]: mbarriers of the stages of the ring
    unsigned char* inputs;   // [2, input_bytes]: [most columns] of T
    unsigned char* sums;     // [2, sums_bytes]: floats [most tiles of a block]
    float* attended;         // [kReaders / 32, head_dim]
    uint64_t* ready;         // [2], one mbarrier for each buffer: its input is complete
    uint64_t* summed;        // [2], likewise: its input has been read by all multipliers, and its sums are complete
    uint64_t* given;         // [2], likewise: the writers have loaded the sums, so their buffer may be overwritten
    const Work* works;       // [last - first]
    const float2* angle;     // [rotary / 2]: cosine and sine of this position
    int slots, slot_bytes, flying, input_bytes, sums_bytes;

    __device__ __forceinline__ void* input(int place) const { return inputs + place * input_bytes; }
    __device__ __forceinline__ float* sums_of(int place) const {
        return reinterpret_cast<float*>(sums + place * sums_bytes);
    }
};

// The current stage or buffer, and the parity of its mbarrier's phase.
struct Turn {
    int place = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next(int places) {
        if (++place == places) {
            place = 0;
            parity ^= 1;
        }
    }
};

// Compute the block's work in each phase, one thread per phase.
__device__ __forceinline__ void plan(const Phase* phases, int first, int last, bool logits, Work* works) {
    for (int i = threadIdx.x; i < last - first; i += kThreads) {
        const Phase phase = phases[first + i];
        Work work;
        const unsigned block = (blockIdx.x + static_cast<unsigned>(phase.shift)) % gridDim.x;
        const unsigned row_group = static_cast<unsigned>(phase.row_group);
        const unsigned units = static_cast<unsigned>(phase.rows) / row_group;
        // Distribute the units evenly, without a product that overflows: the first units % gridDim.x blocks get
        // one more.
        const unsigned each = units / gridDim.x, more = units % gridDim.x;
        work.first = static_cast<int>((each * block + min(block, more)) * row_group);
        work.rows = static_cast<int>((each + (block < more)) * row_group);
        work.weights = phase.weights + work.first * phase.columns;
        work.vectors = static_cast<int>(phase.columns / 8);
        work.shift = __ffs(static_cast<int>(phase.splits)) - 1;
        work.kind = static_cast<int>(phase.kind);
        work.input = static_cast<int>(phase.input);
        work.output = static_cast<int>(phase.output);
        work.row_group = static_cast<int>(row_group);
        work.norm = static_cast<int>(phase.norm);
        work.norm_bias = static_cast<int>(phase.norm_bias);
        work.bias = static_cast<int>(phase.bias);
        work.source = static_cast<int>(phase.source);
        work.layer = static_cast<int>(phase.layer);
        work.publishes = static_cast<int>(phase.publishes);
        if (work.kind == kLinear && work.output == kLogits && !logits) work.rows = 0;
        work.tiles = work.kind == kLinear ? work.rows << work.shift : 0;
        works[i] = work;
    }
    __syncthreads();
}

}  // namespace llmk::persistent
