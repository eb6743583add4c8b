// Skinny GEMM with int4 weights in GPTQ's format, as in decode: reading the weights dominates, and each weight is read
// from memory once. Day 11 derives it.
//
// A block computes 32 columns of out at a time and divides in_features among its 16 warps. A warp processes 128 values
// of k, a *chunk*, then the chunk that is 16 chunks further. The warps' partial sums are added in shared memory, in the
// same order in every run. A lane loads all words of a chunk at once, four times 16 bytes, and those of two chunks
// before it waits for the first: 64 KB are in flight per SM, and few instructions precede the first load.
//
// A warp multiplies 32 columns by 32 values of k per step on tensor cores. The *weights* are operand A, 16 columns at a
// time, and the rows of x are columns of operand B: 8 rows take one mma, 16 rows two. Lane (i, t) = (lane / 4, lane %
// 4) holds the words of columns 4 i ... 4 i + 3 for k = 8 t ... 8 t + 7 of the step. The mma expects other k in each
// lane, but a sum may be taken in any order if weights and x agree. Unpacking yields the pairs (0, 4), (1, 5), (2, 6),
// (3, 7), so shared memory holds each eight elements of x in that order, and a lane's part of operand B is 16
// contiguous bytes.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/int4.cuh"
#include "llmk/mma.cuh"

namespace llmk {

// The division of the work among blocks and warps.
struct Int4Rows {
    static constexpr int kWarps = 16;
    static constexpr int kThreads = 32 * kWarps;
    static constexpr int kColumns = 32;                    // columns of out that a block computes at a time
    static constexpr int kStep = 32;                       // values of k that a warp multiplies per step
    static constexpr int kChunk = 4 * kStep;               // values of k that a warp loads at a time
    static constexpr int kTwoTurns = 2 * kWarps * kChunk;  // values of k that the block has in flight
    static constexpr int kPitch = kColumns + 4;  // floats from row to row of the sums; stores have no bank conflicts
    template <int kTiles>
    static constexpr int kSumBytes = 2 * kWarps * 8 * kTiles * kPitch * static_cast<int>(sizeof(float));
    // SMs of an H200: about as many blocks are launched. The simulated GPU has only 8, and would count other traffic.
    static constexpr int kSMs = 132;

    int rows;     // rows per block, at most 16
    int segment;  // columns of x in shared memory: all, or a multiple of kTwoTurns, or 0 if x does not fit
    int pitch;    // elements from row to row of x in shared memory; two rows start in different halves of the 32 banks
    int parts;    // warps that load one row of x
    int shift;    // the group of a chunk is its number >> shift, if `plain`
    bool plain;   // groups are in order, no chunk spans two groups, and all chunks are whole
    int bytes;    // bytes of shared memory
    dim3 grid;

    // whole: x must be in shared memory as a whole. A GPU with less shared memory than Hopper gets fewer rows per
    // block.
    Int4Rows(const Int4Layer& w, int all_rows, bool whole)
        : rows(all_rows < 16 ? all_rows : 16), parts(kWarps), shift(0) {
        int device = 0, shared = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        for (;; rows = (rows + 1) / 2) {
            const int sum_bytes = rows > 8 ? kSumBytes<2> : kSumBytes<1>,
                      room = (shared - 1024 - sum_bytes) / (2 * rows);
            const int steps = (w.in_features + kStep - 1) / kStep;
            segment = whole ? 0 : (room - kStep) / kTwoTurns * kTwoTurns;
            if ((steps | 1) * kStep <= room) segment = w.in_features;
            pitch = ((segment + kStep - 1) / kStep | 1) * kStep;
            bytes = sum_bytes + 2 * pitch * rows;
            if (segment > 0 || rows == 1) break;
        }
        while (parts * rows > kWarps) parts /= 2;
        while (kChunk << shift < w.group_size && shift < 23) ++shift;
        plain = !w.act_order && w.group_size == kChunk << shift && w.in_features % kChunk == 0;
        const int tiles = (w.out_features + kColumns - 1) / kColumns, tiles_each = (tiles + kSMs - 1) / kSMs;
        grid = dim3((tiles + tiles_each - 1) / tiles_each, (all_rows + rows - 1) / rows);
    }
};

// A lane's words of a chunk, and the scales and zeros to dequantize them if the layer is plain.
struct Int4Chunk {
    Four words[4];   // [step], four columns each
    uint2 scales;    // scales of the four columns
    unsigned zeros;  // the word that holds the four columns' zeros
};

// rows: rows of this block, at most 8 kTiles     shared: share.bytes bytes. `job` provides x and stores the sums:
//   job.prepare(x, first)          loads columns first ... first + share.segment - 1 of x to shared memory, with all
//                                  threads of the block: x [rows][share.pitch], each eight in the order 0 4 1 5 2 6 3 7
//   job.store(row, column, sum)    stores one output
template <int kTiles, bool kPlain, typename Job>
__device__ __forceinline__ void skinny_int4_gemm(const Int4Layer& w, const Int4Rows& share, int rows,
                                                 unsigned char* shared, const Job& job) {
    using S = Int4Rows;
    using Sums = float[8 * kTiles][S::kPitch];
    Sums* partial = reinterpret_cast<Sums*>(shared);  // [2 kWarps]: sums of this tile and of the previous tile
    __half* x = reinterpret_cast<__half*>(shared + S::kSumBytes<kTiles>);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int tiles = (w.out_features + S::kColumns - 1) / S::kColumns;
    const int first_k = warp * S::kChunk;

    // Lanes past the last column or row read the last one instead; their results are not stored.
    auto column_of = [&](int tile) { return min(tile * S::kColumns + 4 * i, w.out_features - 4); };
    auto fetch = [&](Int4Chunk& chunk, int tile, int k) {
        k += first_k;
        if (tile >= tiles || k >= w.in_features) return;
        const int column = column_of(tile);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const unsigned word_row = k / 8 + 4 * j + t;
            const int* word =
                w.qweight + column + static_cast<unsigned long long>(word_row) * static_cast<unsigned>(w.out_features);
            if (kPlain || 8 * word_row < w.in_features)
                chunk.words[j].vector = __ldcs(reinterpret_cast<const uint4*>(word));
        }
        if (kPlain) {
            const size_t at = static_cast<size_t>(k / S::kChunk >> share.shift) * w.out_features + column;
            chunk.scales = *reinterpret_cast<const uint2*>(w.scales + at);
            chunk.zeros = w.qzeros[at / 8];
        }
    };

    const __half* x_row[kTiles];
#pragma unroll
    for (int r = 0; r < kTiles; ++r) x_row[r] = x + min(8 * r + i, rows - 1) * share.pitch + 8 * t;
    // sums[r][j][e]: column 4 i + 2 j + e / 2, row 8 r + 2 t + e % 2 of out.
    float sums[kTiles][2][4];
    auto use = [&](const Int4Chunk& chunk, int tile, int k0, int staged) {
        k0 += first_k;
        if (k0 >= w.in_features) return;
        float product[kTiles][2][4] = {};  // sums over this chunk only
        __half2 low[4], high[4];           // 1024 + zero, and -(64 + zero)
        if (kPlain) {
#pragma unroll
            for (int c = 0; c < 4; ++c) constants((chunk.zeros >> (i % 2 * 16 + 4 * c) & 15) + 1, low[c], high[c]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int k = k0 + j * S::kStep;
            const bool there = kPlain || k + 8 * t < w.in_features;
            __half2 weight[4][4] = {};  // [c]: weights of column 4 i + c, in pairs
            if (kPlain) {
#pragma unroll
                for (int c = 0; c < 4; ++c) unpack(chunk.words[j].word[c], low[c], high[c], weight[c]);
            } else if (there) {
                finish(chunk.words[j], w, k + 8 * t, column_of(tile), weight);
            }
#pragma unroll
            for (int r = 0; r < kTiles; ++r) {
                Four b = {make_uint4(0, 0, 0, 0)};
                if (there) b.vector = *reinterpret_cast<const uint4*>(x_row[r] + (k - staged));
#pragma unroll
                for (int p = 0; p < 4; p += 2) {
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const __half2(&upper)[4] = weight[2 * h], (&lower)[4] = weight[2 * h + 1];
                        const unsigned a[4] = {as_bits(upper[p]), as_bits(lower[p]), as_bits(upper[p + 1]),
                                               as_bits(lower[p + 1])};
                        mma_m16n8k16<__half>(product[r][h], a, b.word[p], b.word[p + 1]);
                    }
                }
            }
        }
        const float2 left = __half22float2(as_half2(chunk.scales.x)), right = __half22float2(as_half2(chunk.scales.y));
        const float scale[4] = {left.x, left.y, right.x, right.y};
#pragma unroll
        for (int r = 0; r < kTiles; ++r) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[r][h][e] += kPlain ? product[r][h][e] * scale[2 * h + e / 2] : product[r][h][e];
            }
        }
    };

    Int4Chunk even, odd;
    fetch(even, blockIdx.x, 0);
    fetch(odd, blockIdx.x, S::kTwoTurns / 2);
    int staged = -1;  // the first column of x in shared memory
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
        for (int r = 0; r < kTiles; ++r) {
#pragma unroll
            for (int e = 0; e < 8; ++e) sums[r][e / 4][e % 4] = 0;
        }
#pragma unroll 1
        for (int k = 0; k < w.in_features; k += S::kTwoTurns) {
            const int segment = k - k % share.segment;
            if (segment != staged) {
                __syncthreads();  // all warps have used the previous columns
                job.prepare(x, staged = segment);
                __syncthreads();
            }
            // After the last chunks of a tile, fetch the first chunks of the next tile.
            const bool more = k + S::kTwoTurns < w.in_features;
            const int next_tile = more ? tile : tile + gridDim.x, next_k = more ? k + S::kTwoTurns : 0;
            use(even, tile, k, staged);
            fetch(even, next_tile, next_k);
            use(odd, tile, k + S::kTwoTurns / 2, staged);
            fetch(odd, next_tile, next_k + S::kTwoTurns / 2);
        }
#pragma unroll
        for (int r = 0; r < kTiles; ++r) {
#pragma unroll
            for (int o = 0; o < 2; ++o) {
                const int row = 8 * r + 2 * t + o;
                const float4 four = make_float4(sums[r][0][o], sums[r][0][2 + o], sums[r][1][o], sums[r][1][2 + o]);
                if (row < rows) *reinterpret_cast<float4*>(&partial[warp][row][4 * i]) = four;
            }
        }
        __syncthreads();  // the sums are complete, and no warp reads the sums of the previous tile
        for (int o = threadIdx.x; o < rows * S::kColumns; o += S::kThreads) {
            const int row = o / S::kColumns, c = o % S::kColumns, to = tile * S::kColumns + c;
            if (to >= w.out_features) continue;
            float sum = 0.0f;
#pragma unroll
            for (int part = 0; part < S::kWarps; ++part) sum += partial[part][row][c];
            job.store(row, to, sum);
        }
        partial = reinterpret_cast<Sums*>(shared) + (partial == reinterpret_cast<Sums*>(shared) ? S::kWarps : 0);
    }
}

}  // namespace llmk
