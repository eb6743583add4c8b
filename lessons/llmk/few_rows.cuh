// The product of a few rows with a weight matrix, x weight^T, as when a model decodes: the weights are the work, and each is
// read from memory once. Day 4 derives it.
//
// A *tile* is eight features of out, for all rows, up to 16. A team of `parts` warps makes a tile: each of its warps takes a part
// of in_features, and the parts are added up in shared memory, in the same order in every run. Few features need large
// teams, or there would be too few blocks for the GPU; for many features a warp is a team of its own. A *strip* is one tile, or
// two neighbors: what a warp makes at a time.
//
// A warp multiplies 32 columns at a time on tensor cores, where the rows of x are operand A and the rows of weight the columns
// of operand B. Lane (i, t) = (lane / 4, lane % 4) loads the 16 bytes at columns 8 t ... 8 t + 7 of weight row i of the tile, and
// of x rows i and i + 8. The tensor core wants other columns of each lane; but a sum may be taken in any order, so long as
// weight and x agree. What the next steps need is already on its way: each lane copies to a queue what it will use itself.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"

namespace llmk {

struct FewRows {
    static constexpr int kWarps = 16;
    static constexpr int kThreads = 32 * kWarps;
    static constexpr int kRows = 16;         // of x, at most
    static constexpr int kTile = 8;          // features
    static constexpr int kStep = 32;         // columns of x and weight
    static constexpr int kEntries = 8;       // of a lane's queue, 16 bytes each
    static constexpr int kBlocks = 2 * 132;  // that an H200 runs at a time
    // Floats from one warp's sums to the next one's: eight more than they are, so that four warps' start in other banks.
    template <int kWide>
    static constexpr int kSums = kWide * kRows * kTile + 8;
    template <int kWide>
    static constexpr int kBytes =
        kEntries * kThreads * 16 + 2 * kWarps * kSums<kWide> * static_cast<int>(sizeof(float));

    int strips;       // of 1 or 2 tiles
    int parts;        // warps of a team: a power of two
    unsigned blocks;  // each makes as many strips as the others, but for the last ones
    bool wide;        // a warp makes two tiles at a time

    // How to share the work of `tiles` tiles: enough blocks, but no more parts than steps. Each warp reads x anew: with many rows
    // it makes two tiles of each x that it reads, if that leaves enough blocks.
    FewRows(int tiles, int in_features, int rows) : parts(1), wide(rows > 4 && tiles >= kBlocks) {
        strips = wide ? (tiles + 1) / 2 : tiles;
        while (parts < kWarps && parts * kStep < in_features && strips * parts < kWarps * kBlocks) parts *= 2;
        const int turns = (strips + kWarps / parts - 1) / (kWarps / parts);
        const int turns_each = (turns + kBlocks - 1) / kBlocks;
        blocks = static_cast<unsigned>((turns + turns_each - 1) / turns_each);
    }
};

// Eight neighbors of a row from column `column` on; zeros where there are none.
template <typename T>
__device__ __forceinline__ uint4 eight_columns(const T* row, bool exists, int column, int columns, bool vectors) {
    uint4 bits = make_uint4(0, 0, 0, 0);
    if (vectors) {
        if (exists && column < columns) bits = *reinterpret_cast<const uint4*>(row + column);
    } else {
        T* elements = reinterpret_cast<T*>(&bits);
#pragma unroll
        for (int j = 0; j < 8; ++j) elements[j] = exists && column + j < columns ? row[column + j] : T(0.0f);
    }
    return bits;
}

// x: [rows, in_features], of which there are at most 16   shared: FewRows::kBytes   vectors: all rows of x and weight start at
// multiples of 16 bytes. The job says what the weights are and what becomes of the sums:
//   job.weight_row(tile, i)            row i of a tile's eight, or a null pointer where there is none (also past the last tile)
//   job.expect(column, x, x8)          is shown eight columns of x rows i and i + 8, and may load what use will need there
//   job.use(weight)                    the weights to multiply them with, from those in memory
//   job.end_of_strip()                 what it does before the barrier at the end of a strip
//   job.store(tile, i, row, sum)       one output
// kWide: tiles of a strip, which a warp makes at a time
template <int kWide, typename T, typename Job>
__device__ __forceinline__ void skinny_gemm(unsigned char* shared, const T* x, int rows, int in_features, int strips,
                                            int parts, bool vectors, Job& job) {
    using F = FewRows;
    constexpr int kStages = F::kEntries / kWide;  // steps in the queue: one is used, the others are on their way
    constexpr int kSums = F::kSums<kWide>, kTileSums = F::kRows * F::kTile;
    uint4* queue = reinterpret_cast<uint4*>(shared) + threadIdx.x;  // entry e of this thread is queue[e * kThreads]
    float* sums = reinterpret_cast<float*>(shared + F::kEntries * F::kThreads * 16);  // [kWarps][kSums]
    float* other_sums = sums + F::kWarps * kSums;  // of the strips before, which slow warps may still be reading
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int team = warp / parts, teams = F::kWarps / parts;
    const int steps = (in_features + F::kStep - 1) / F::kStep, own_steps = (steps + parts - 1) / parts;
    const int first_step = min(warp % parts * own_steps, steps), end_step = min(first_step + own_steps, steps);
    const T* x_row = x + static_cast<long long>(i) * in_features;
    const T* x_row8 = x_row + 8LL * in_features;

    // The next step to ask for. After the last one of a strip comes the first one of the team's next strip.
    int next_strip = first_step < end_step ? blockIdx.x * teams + team : strips, next_step = first_step;
    const T* next_row[kWide];
    auto find_rows = [&] {
#pragma unroll
        for (int w = 0; w < kWide; ++w) {
            next_row[w] = next_strip < strips ? job.weight_row(next_strip * kWide + w, i) : nullptr;
        }
    };
    find_rows();
    auto fetch = [&](int stage) {
        if (next_strip < strips) {
            const int column = next_step * F::kStep + 8 * t;
#pragma unroll
            for (int w = 0; w < kWide; ++w) {
                T* to = reinterpret_cast<T*>(queue + (stage * kWide + w) * F::kThreads);
                if (vectors) {
                    const bool there = next_row[w] != nullptr && column < in_features;
                    cp_async_16<true>(to, there ? next_row[w] + column : x, there, in_features - column);
                } else {
                    cp_async_16<false>(to, next_row[w] + column, next_row[w] != nullptr, in_features - column);
                }
            }
            if (++next_step == end_step) {
                next_step = first_step;
                next_strip += gridDim.x * teams;
                find_rows();
            }
        }
        __pipeline_commit();  // an empty group keeps the count of groups right at the end
    };
    for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);

    int stage = 0;
    for (int first_strip = blockIdx.x * teams; first_strip < strips; first_strip += gridDim.x * teams) {
        if (first_strip + team < strips) {
            float product[kWide][4] = {};  // of each tile rows i and i + 8 of out (two each), features 2 t and 2 t + 1
            for (int step = first_step; step < end_step; ++step) {
                fetch(stage == 0 ? kStages - 1 : stage - 1);
                const int column = step * F::kStep + 8 * t;
                const uint4 a = eight_columns(x_row, i < rows, column, in_features, vectors);
                const uint4 a8 = eight_columns(x_row8, i + 8 < rows, column, in_features, vectors);
                job.expect(column, a, a8);
                __pipeline_wait_prior(kStages - 1);
                const unsigned left[4] = {a.x, a8.x, a.y, a8.y}, right[4] = {a.z, a8.z, a.w, a8.w};
#pragma unroll
                for (int w = 0; w < kWide; ++w) {
                    const uint4 b = job.use(queue[(stage * kWide + w) * F::kThreads]);
                    mma_m16n8k16<T>(product[w], left, b.x, b.y);
                    mma_m16n8k16<T>(product[w], right, b.z, b.w);
                }
                stage = stage == kStages - 1 ? 0 : stage + 1;
            }
#pragma unroll
            for (int w = 0; w < kWide; ++w) {
                float2* to = reinterpret_cast<float2*>(sums + warp * kSums + w * kTileSums);
                to[lane] = make_float2(product[w][0], product[w][1]);
                to[32 + lane] = make_float2(product[w][2], product[w][3]);
            }
        }
        job.end_of_strip();
        __syncthreads();  // the sums are complete, and nobody reads the other ones any more
        for (int o = threadIdx.x; o < rows * teams * kWide * F::kTile; o += F::kThreads) {
            const int feature = o % F::kTile, w = o / F::kTile % kWide;
            const int of_team = o / (F::kTile * kWide) % teams, row = o / (F::kTile * kWide * teams);
            if (first_strip + of_team >= strips) continue;
            const float* part = sums + of_team * parts * kSums + w * kTileSums + row * F::kTile + feature;
            float sum = 0.0f;
            for (int p = 0; p < parts; ++p) sum += part[p * kSums];
            job.store((first_strip + of_team) * kWide + w, feature, row, sum);
        }
        float* used = sums;
        sums = other_sums;
        other_sums = used;
    }
}

}  // namespace llmk
