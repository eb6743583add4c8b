// Skinny GEMM, out = x weight^T with up to 16 rows of x, as in decode: reading the weights dominates, and each weight
// is read from memory once. Day 4 derives it.
//
// A *tile* is eight features of out, for all rows. A team of `parts` warps computes a tile: each warp sums over a part
// of in_features, and the partial sums are added in shared memory, in the same order in every run. Few features need
// large teams, or most warps of the GPU would have no work. A *strip* is one tile or two neighboring ones: the tiles that
// a warp computes at a time.
//
// A warp multiplies 32 columns per step on tensor cores, with the rows of x as operand A and the rows of weight as
// columns of operand B. Lane (i, t) = (lane / 4, lane % 4) loads the 16 bytes at columns 8 t ... 8 t + 7 of weight row
// i of the tile, and of x rows i and i + 8. The mma expects other columns in each lane, but a sum may be taken in any
// order if weight and x agree. Loads run ahead: each lane copies to a queue what it will use itself. It copies a *chunk*
// of two steps at a time, so 128 neighboring bytes of each row: DRAM delivers them faster than pieces of 64 bytes.
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
    static constexpr int kRows = 16;  // the maximum number of rows of x
    static constexpr int kTile = 8;   // features of a tile
    static constexpr int kStep = 32;  // columns of x and weight per step
    static constexpr int kSteps = 2;  // steps per chunk
    static constexpr int kChunk = kSteps * kStep;
    static constexpr int kEntries = 8;  // entries of 16 bytes in a lane's queue
    // Resident blocks of an H200. The number does not come from the device, because it decides in which order sums are
    // added: results are the same on every GPU. The simulated GPU has only 8 SMs.
    static constexpr int kBlocks = 2 * 132;
    // Floats from one warp's sums to the next warp's: eight more than the sums, so that four warps' sums start in
    // different banks.
    template <int kWide>
    static constexpr int kSums = kWide * kRows * kTile + 8;
    template <int kWide>
    static constexpr int kBytes =
        kEntries * kThreads * 16 + 2 * kWarps * kSums<kWide> * static_cast<int>(sizeof(float));

    int strips;       // the number of strips; a strip is 1 or 2 tiles
    int parts;        // warps per team: a power of two
    unsigned blocks;  // the number of blocks to launch
    bool wide;        // true if a strip is two tiles

    // Each warp reads x again; with many rows of x it computes two tiles per x that it reads, if that leaves enough
    // blocks. The blocks go through the strips in *turns*, a strip per team. Choose the size of the teams so that the
    // last block finishes first; of equal ones, the size that occupies more blocks.
    FewRows(int tiles, int in_features, int rows) : parts(1), blocks(0), wide(rows > 4 && tiles >= kBlocks) {
        strips = wide ? (tiles + 1) / 2 : tiles;
        const int chunks = (in_features + kChunk - 1) / kChunk;
        long long least = -1;
        for (int size = 1; size <= kWarps; size *= 2) {
            const int turns = (strips + kWarps / size - 1) / (kWarps / size);
            const long long chunks_each = (chunks + size - 1) / size;
            const long long most = (turns + kBlocks - 1) / kBlocks * chunks_each;  // chunks of the last block's warps
            if (least >= 0 && (most > least || (most == least && turns > kBlocks))) continue;
            least = most;
            parts = size;
            blocks = static_cast<unsigned>(turns < kBlocks ? turns : kBlocks);
        }
    }
};

// Return eight neighboring elements of a row, starting at `column`; zeros outside the matrix.
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

// x: [rows, in_features], rows <= 16   shared: FewRows::kBytes   vectors: all rows of x and weight start at multiples
// of 16 bytes kWide: tiles per strip, which a warp computes at a time. `job` provides the weights and stores the sums:
//   job.weight_row(tile, i)            row i of a tile's eight, or nullptr if there is none (also past the last tile)
//   job.expect(step, column, x, x8)    receives eight columns of x rows i and i + 8, of each step of a chunk in turn;
//                                      may load what use() will need
//   job.use(step, weight)              returns the weights to multiply in that step, given those in memory
//   job.end_of_strip()                 runs before the barrier at the end of a strip
//   job.store(tile, i, row, sum)       stores one output
template <int kWide, typename T, typename Job>
__device__ __forceinline__ void skinny_gemm(unsigned char* shared, const T* x, int rows, int in_features, int strips,
                                            int parts, bool vectors, Job& job) {
    using F = FewRows;
    constexpr int kPieces = kWide * F::kSteps;      // 16-byte pieces of weights that a lane copies per chunk
    constexpr int kStages = F::kEntries / kPieces;  // chunks in the queue: one in use, the others being copied
    constexpr int kSums = F::kSums<kWide>, kTileSums = F::kRows * F::kTile;
    uint4* queue = reinterpret_cast<uint4*>(shared) + threadIdx.x;  // entry e of this thread is queue[e * kThreads]
    float* sums = reinterpret_cast<float*>(shared + F::kEntries * F::kThreads * 16);  // [kWarps][kSums]
    float* other_sums = sums + F::kWarps * kSums;  // sums of the previous strip, which slow warps may still read
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int team = warp / parts, teams = F::kWarps / parts;
    const int chunks = (in_features + F::kChunk - 1) / F::kChunk, own_chunks = (chunks + parts - 1) / parts;
    const int first_chunk = min(warp % parts * own_chunks, chunks), end_chunk = min(first_chunk + own_chunks, chunks);
    const T* x_row = x + static_cast<long long>(i) * in_features;
    const T* x_row8 = x_row + 8LL * in_features;

    // The next chunk to copy. The first chunk of the team's next strip follows the last chunk of a strip.
    int next_strip = first_chunk < end_chunk ? blockIdx.x * teams + team : strips, next_chunk = first_chunk;
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
#pragma unroll
            for (int p = 0; p < kPieces; ++p) {
                const int w = p / F::kSteps, column = next_chunk * F::kChunk + p % F::kSteps * F::kStep + 8 * t;
                T* to = reinterpret_cast<T*>(queue + (stage * kPieces + p) * F::kThreads);
                if (vectors) {
                    const bool there = next_row[w] != nullptr && column < in_features;
                    cp_async_16<true>(to, there ? next_row[w] + column : x, there, in_features - column);
                } else {
                    cp_async_16<false>(to, next_row[w] + column, next_row[w] != nullptr, in_features - column);
                }
            }
            if (++next_chunk == end_chunk) {
                next_chunk = first_chunk;
                next_strip += gridDim.x * teams;
                find_rows();
            }
        }
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };
    for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);

    int stage = 0;
    for (int first_strip = blockIdx.x * teams; first_strip < strips; first_strip += gridDim.x * teams) {
        if (first_strip + team < strips) {
            float product[kWide][4] = {};  // for each tile: rows i and i + 8 of out, features 2 t and 2 t + 1
            for (int chunk = first_chunk; chunk < end_chunk; ++chunk) {
                fetch(stage == 0 ? kStages - 1 : stage - 1);
                const int first_column = chunk * F::kChunk + 8 * t;
                uint4 a[F::kSteps], a8[F::kSteps];
#pragma unroll
                for (int s = 0; s < F::kSteps; ++s) {
                    const int column = first_column + s * F::kStep;
                    a[s] = eight_columns(x_row, i < rows, column, in_features, vectors);
                    a8[s] = eight_columns(x_row8, i + 8 < rows, column, in_features, vectors);
                    job.expect(s, column, a[s], a8[s]);
                }
                __pipeline_wait_prior(kStages - 1);
#pragma unroll
                for (int s = 0; s < F::kSteps; ++s) {
                    const unsigned left[4] = {a[s].x, a8[s].x, a[s].y, a8[s].y};
                    const unsigned right[4] = {a[s].z, a8[s].z, a[s].w, a8[s].w};
#pragma unroll
                    for (int w = 0; w < kWide; ++w) {
                        const uint4 b = job.use(s, queue[(stage * kPieces + w * F::kSteps + s) * F::kThreads]);
                        mma_m16n8k16<T>(product[w], left, b.x, b.y);
                        mma_m16n8k16<T>(product[w], right, b.z, b.w);
                    }
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
        __syncthreads();  // the sums are complete, and no warp reads the sums of the previous strip
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
