// LayerNorm, then query, key and value by one matmul with int4 weights in GPTQ's format: w = (q - zero) * scale.
//
//   x: [rows, C]     weight, beta: [C]     bias: [3 C]     out: [3, rows, C]     rows = batch * length
//   qweight: [C / 8, 3 C]     qzeros: [groups, 3 C / 8]     scales: [groups, 3 C]     g_idx: [C]
//   normalized: [rows, C], memory for the normalized rows
//
// Few rows: the weights limit the time, as in gptq_linear, and the matmul is the same (llmk/int4_rows.cuh). Each block
// normalizes all rows into shared memory while its first weights are in flight. One kernel: only x, the weights and out
// pass through global memory.
//
// Many rows: the tensor cores limit the time, and a norm in every block would be repeated for every 256 columns. So a
// first kernel writes the normalized rows, y, and a GEMM computes tiles of 128 rows by 256 columns. A warp owns 32
// columns and all 128 rows of the tile, so only one warp of the block unpacks each word of qweight. It unpacks in
// registers and never stores dequantized weights. The GEMM uses wgmma on Hopper and mma.sync on other GPUs.
//
// In all of them the *weights* are operand A, 16 columns at a time. Lane (i, t) = (lane / 4, lane % 4) unpacks the
// words of four columns at k = 8 t ... 8 t + 7 of a step of 32, which gives the pairs (0, 4), (1, 5), (2, 6), (3, 7). y
// is stored in groups of eight elements ("eights") in that order: 0 4 1 5 2 6 3 7. So a lane's part of operand B of
// mma.sync is 16 contiguous bytes. wgmma reads operand B from shared memory. There, a step of four eights has pair 0 of
// each eight first, then pair 1 of each, and so on.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/int4_rows.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kStep = 32;  // values of k per step of a warp
constexpr unsigned kAllLanes = 0xffffffffu;

// The outputs of the GEMM: their bias and their addresses.
struct Output {
    const __half* bias;
    __half* out;
    int rows, width;  // width is C; columns C ... 2 C - 1 of the GEMM are out[1]
    bool has_bias;

    __device__ __half* at(int row, int column) const {
        const int part = column / width;
        return out + (static_cast<size_t>(part) * rows + row) * width + (column - part * width);
    }
};

// ------------------------------------------------------------------------------------------------------- LayerNorm

// The moments of a set of elements. The variance is deviations / count.
struct Moments {
    float count, mean, deviations;  // deviations: the sum of (element - mean)^2
};

// Merge two sets by Chan's formula. Welford's formula is the special case of one new element.
__device__ __forceinline__ Moments join(const Moments& a, const Moments& b) {
    const float count = a.count + b.count, share = count > 0 ? b.count / count : 0.0f, apart = b.mean - a.mean;
    return {count, a.mean + apart * share, a.deviations + b.deviations + apart * apart * a.count * share};
}

// Load eight neighboring elements as floats.
__device__ __forceinline__ void load_eight(const __half* from, float (&x)[8]) {
    llmk::Four bits;
    bits.vector = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const float2 pair = __half22float2(llmk::as_half2(bits.word[j]));
        x[2 * j] = pair.x;
        x[2 * j + 1] = pair.y;
    }
}

// Return the moments of the union of all lanes' sets, in every lane.
__device__ Moments join_lanes(Moments all) {
#pragma unroll
    for (int reach = 16; reach > 0; reach /= 2) {
        const Moments other = {__shfl_xor_sync(kAllLanes, all.count, reach),
                               __shfl_xor_sync(kAllLanes, all.mean, reach),
                               __shfl_xor_sync(kAllLanes, all.deviations, reach)};
        all = join(all, other);
    }
    return all;
}

// Return the moments of a warp's part of a row, in every lane. An *eight* is eight neighboring elements; a lane has the
// eights first, first + step, ... It reads them twice: for their mean, and for their deviations from it.
__device__ __forceinline__ Moments moments_of(const __half* row, int width, int first, int step) {
    Moments own = {0, 0, 0};
    float x[8];
#pragma unroll 4
    for (int eight = first; eight < width / 8; eight += step) {
        load_eight(row + 8 * eight, x);
        own.count += 8;
#pragma unroll
        for (int j = 0; j < 8; ++j) own.mean += x[j];
    }
    if (own.count > 0) own.mean /= own.count;
#pragma unroll 4
    for (int eight = first; eight < width / 8; eight += step) {
        load_eight(row + 8 * eight, x);
#pragma unroll
        for (int j = 0; j < 8; ++j) own.deviations += (x[j] - own.mean) * (x[j] - own.mean);
    }
    return join_lanes(own);
}

struct Norm {
    const __half* x;
    const __half* weight;
    const __half* beta;
    int width;
    float eps;

    // Return factor and offset of a row: an element x is normalized to x * factor + offset.
    __device__ float2 line(const Moments& m) const {
        const float factor = rsqrtf(m.deviations / m.count + eps);
        return make_float2(factor, -m.mean * factor);
    }
};

// Normalize eight elements of a row, in the order 0 4 1 5 2 6 3 7.
__device__ __forceinline__ uint4 normalize(const __half* row, float2 line, const float (&weight)[8],
                                           const float (&beta)[8]) {
    float x[8];
    load_eight(row, x);
#pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = (x[j] * line.x + line.y) * weight[j] + beta[j];
    return make_uint4(llmk::pack_pair<__half>(x[0], x[4]), llmk::pack_pair<__half>(x[1], x[5]),
                      llmk::pack_pair<__half>(x[2], x[6]), llmk::pack_pair<__half>(x[3], x[7]));
}

constexpr int kNormWarps = 4;

// Normalize one row per block. across: store a step of 32 as the first pairs of its four eights, then their second
// pairs, and so on (the order for wgmma); otherwise store one eight after another.
__global__ void __launch_bounds__(32 * kNormWarps) layer_norm(Norm norm, __half* __restrict__ y, bool across) {
    __shared__ Moments parts[kNormWarps];
    const size_t from = static_cast<size_t>(blockIdx.x) * norm.width;
    const Moments own = moments_of(norm.x + from, norm.width, threadIdx.x, blockDim.x);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    Moments all = {0, 0, 0};
#pragma unroll
    for (int warp = 0; warp < kNormWarps; ++warp) all = join(all, parts[warp]);
    const float2 line = norm.line(all);
#pragma unroll 4
    for (int eight = threadIdx.x; eight < norm.width / 8; eight += blockDim.x) {
        float weight[8], beta[8];
        load_eight(norm.weight + 8 * eight, weight);
        load_eight(norm.beta + 8 * eight, beta);
        const uint4 pairs = normalize(norm.x + from + 8 * eight, line, weight, beta);
        if (across) {
            unsigned* to = reinterpret_cast<unsigned*>(y + from + eight / 4 * kStep) + eight % 4;
            to[0] = pairs.x, to[4] = pairs.y, to[8] = pairs.z, to[12] = pairs.w;
        } else {
            *reinterpret_cast<uint4*>(y + from + 8 * eight) = pairs;
        }
    }
}

// -------------------------------------------------------------------------------------------------------- few rows

using S = llmk::Int4Rows;
constexpr int kFewRows = 64;  // up to this number of rows, use the kernel that reads the weights once per 16 rows

struct Normalized {
    Norm norm;
    Output output;
    Moments* moments;  // shared memory, one per warp
    float2* lines;     // shared memory, one per row: the factor and offset that normalize its x
    int first_row, rows, pitch;
    int parts;  // warps that share a row

    // First copy x unchanged. A thread copies the eights whose moments it computes.
    __device__ void prepare(__half* y, int) const {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / parts;
        if (row < rows) {
            const int first = threadIdx.x % (32 * parts), step = 32 * parts;
            const __half* x = norm.x + static_cast<size_t>(first_row + row) * norm.width;
#pragma unroll 4
            for (int eight = first; eight < norm.width / 8; eight += step)
                __pipeline_memcpy_async(y + row * pitch + 8 * eight, x + 8 * eight, 16);
            __pipeline_commit();
            __pipeline_wait_prior(0);
            const Moments all = moments_of(y + row * pitch, norm.width, first, step);
            if (lane == 0) moments[warp] = all;
        }
        __syncthreads();
        if (warp < rows) {
            const Moments all = join_lanes(lane < parts ? moments[warp * parts + lane] : Moments{0, 0, 0});
            if (lane == 0) lines[warp] = norm.line(all);
        }
        __syncthreads();
        // Then normalize the same columns of all rows, so that a thread reads their weight and beta once.
        for (int eight = threadIdx.x; eight < norm.width / 8; eight += S::kThreads) {
            float weight[8], beta[8];
            load_eight(norm.weight + 8 * eight, weight);
            load_eight(norm.beta + 8 * eight, beta);
#pragma unroll 2
            for (int r = 0; r < rows; ++r) {
                __half* at = y + r * pitch + 8 * eight;
                *reinterpret_cast<uint4*>(at) = normalize(at, lines[r], weight, beta);
            }
        }
    }

    __device__ void store(int row, int column, float sum) const {
        if (output.has_bias) sum += __half2float(output.bias[column]);
        *output.at(first_row + row, column) = __float2half(sum);
    }
};

// kTiles: tiles of 8 rows per block. kPlain: groups are in order and no chunk spans two (see llmk::Int4Rows).
template <int kTiles, bool kPlain>
__global__ void __launch_bounds__(S::kThreads, 1) few_rows(llmk::Int4Layer w, S share, Normalized job) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Moments moments[S::kWarps];
    __shared__ float2 lines[S::kWarps];
    job.moments = moments;
    job.lines = lines;
    job.first_row = blockIdx.y * share.rows;
    job.rows = min(share.rows, job.output.rows - job.first_row);
    llmk::skinny_int4_gemm<kTiles, kPlain>(w, share, job.rows, shared, job);
}

// ----------------------------------------------------------------------------------------- many rows, by mma.sync

constexpr int kTileWarps = 8;
constexpr int kTileThreads = 32 * kTileWarps;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 32 * kTileWarps;
constexpr int kSteps = 2;           // steps per stage
constexpr int kTileStages = 5;      // stages: one in use, the others in flight
constexpr int kStripesPerStep = 4;  // stripes of 8 rows per group of mma.sync

struct TileStage {
    // A row of y has 64 bytes per step. Eight lanes read two neighboring rows, which occupy all 32 banks. In the second
    // step the two rows of each pair are swapped, so that lanes that copy both steps of one row have no bank conflicts.
    uint4 y[kSteps][kTileRows][kStep / 8];
    uint4 words[kSteps][kTileThreads];    // the words of each thread
    uint2 scales[kSteps][kTileWarps][8];  // the scales of the four columns of each quad of lanes
    int zeros[kSteps][kTileWarps][8];
};

template <bool kPlain>
__global__ void __launch_bounds__(kTileThreads, 1)
    many_rows(const __half* __restrict__ y, llmk::Int4Layer w, Output output) {
    constexpr int kStripes = kTileRows / 8;
    extern __shared__ __align__(16) unsigned char shared[];
    TileStage* stages = reinterpret_cast<TileStage*>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int first_row = blockIdx.x * kTileRows, rows = min(kTileRows, output.rows - first_row);
    // This lane's four columns. Lanes past the last row or column read the last one instead; their results are not
    // stored.
    const int to = blockIdx.y * kTileColumns + warp * 32 + 4 * i, column = min(to, w.out_features - 4);
    const unsigned step_words = kStep / 8 * w.out_features;

    // This thread copies eights of y: all at the same k, from rows kApart apart.
    constexpr int kEights = kSteps * kStep / 8, kApart = kTileThreads / kEights;
    const int eight = threadIdx.x % kEights, first = threadIdx.x / kEights;
    int from[kTileRows / kApart];  // offset from the first row of the tile, in elements
#pragma unroll
    for (int n = 0; n < kTileRows / kApart; ++n) {
        from[n] = min(first + n * kApart, rows - 1) * w.in_features + 8 * eight;
    }
    y += static_cast<size_t>(first_row) * w.in_features;

    const int stage_count = (w.in_features + kSteps * kStep - 1) / (kSteps * kStep);
    int next = 0, group = 0, left = kPlain ? w.group_size : 0;  // left: remaining values of k in the group
    auto fetch = [&] {
        if (next < stage_count) {
            TileStage& s = stages[next % kTileStages];
            const int k0 = next * kSteps * kStep;
            const bool there = kPlain || k0 + 8 * eight < w.in_features;
#pragma unroll
            for (int n = 0; n < kTileRows / kApart; ++n) {
                __pipeline_memcpy_async(&s.y[eight / 4][(first ^ eight / 4 % 2) + n * kApart][eight % 4],
                                        there ? y + (from[n] + k0) : y, 16, there ? 0 : 16);
            }
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                const bool exists = kPlain || k0 + step * kStep + 8 * t < w.in_features;
                const int* word = w.qweight + static_cast<size_t>(t) * w.out_features + column;
                word += static_cast<size_t>(static_cast<unsigned>(next * kSteps + step)) * step_words;
                __pipeline_memcpy_async(&s.words[step][threadIdx.x], exists ? word : w.qweight, 16, exists ? 0 : 16);
                if (kPlain) {
                    if (t == 0) {
                        const size_t at = static_cast<size_t>(group) * w.out_features + column;
                        __pipeline_memcpy_async(&s.scales[step][warp][i], w.scales + at, 8);
                        __pipeline_memcpy_async(&s.zeros[step][warp][i], w.qzeros + at / 8, 4);
                    }
                    left -= kStep;
                    if (left == 0) {
                        ++group;
                        left = w.group_size;
                    }
                }
            }
            ++next;
        }
        __pipeline_commit();
    };
    for (int s = 0; s < kTileStages - 1; ++s) fetch();

    // sums[r][j][e] belongs to column 4 i + 2 j (e < 2) or 4 i + 2 j + 1, and to row 8 r + 2 t (even e) or 8 r + 2 t +
    // 1.
    float sums[kStripes][2][4] = {};
    for (int number = 0; number < stage_count; ++number) {
        __pipeline_wait_prior(kTileStages - 2);
        __syncthreads();  // this stage has arrived, and no warp reads the previous stage
        fetch();
        const TileStage& s = stages[number % kTileStages];
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            llmk::Four words;
            words.vector = s.words[step][threadIdx.x];
            __half2 weight[4][4] = {};  // [c]: dequantized weights of column 4 i + c, in pairs
            const int k = (number * kSteps + step) * kStep + 8 * t;
            if (kPlain) {
                const unsigned zeros = static_cast<unsigned>(s.zeros[step][warp][i]) >> (column % 8 * 4);
                llmk::finish(words, zeros, s.scales[step][warp][i], weight);
            } else if (k < w.in_features) {
                llmk::finish(words, w, k, column, weight);
            }
#pragma unroll
            for (int r = 0; r < kStripes; r += kStripesPerStep) {
                llmk::Four b[kStripesPerStep];
#pragma unroll
                for (int g = 0; g < kStripesPerStep; ++g) {
                    b[g].vector = s.y[step][8 * (r + g) + (i ^ step % 2)][t];
                }
#pragma unroll
                for (int p = 0; p < 4; p += 2) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const __half2(&upper)[4] = weight[2 * j], (&lower)[4] = weight[2 * j + 1];
                        const unsigned a[4] = {llmk::as_bits(upper[p]), llmk::as_bits(lower[p]),
                                               llmk::as_bits(upper[p + 1]), llmk::as_bits(lower[p + 1])};
#pragma unroll
                        for (int g = 0; g < kStripesPerStep; ++g)
                            llmk::mma_m16n8k16<__half>(sums[r + g][j], a, b[g].word[p], b[g].word[p + 1]);
                    }
                }
            }
        }
    }

    if (to >= w.out_features) return;
    float bias[4] = {};
    if (output.has_bias) {
#pragma unroll
        for (int c = 0; c < 4; ++c) bias[c] = __half2float(output.bias[column + c]);
    }
#pragma unroll
    for (int r = 0; r < kStripes; ++r) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int row = 8 * r + 2 * t + odd;
            if (row >= rows) continue;
            const uint2 four =
                make_uint2(llmk::as_bits(__floats2half2_rn(sums[r][0][odd] + bias[0], sums[r][0][2 + odd] + bias[1])),
                           llmk::as_bits(__floats2half2_rn(sums[r][1][odd] + bias[2], sums[r][1][2 + odd] + bias[3])));
            *reinterpret_cast<uint2*>(output.at(first_row + row, column)) = four;  // all in one part of out
        }
    }
}

// -------------------------------------------------------------------------------------------- many rows, by wgmma

// One of the 384 threads of a block issues TMA loads for the next steps: 128 rows of y, and the words of 256 columns.
// Two consumer warpgroups compute 128 columns each, with operand A in registers. They unpack a step of 32 while the
// wgmmas of the previous step run. Blocks are persistent and continue with the next tile. C and group_size are
// multiples of 64.
namespace hopper {

constexpr int kRows = 128, kColumns = 256, kDepth = 64;
constexpr int kThreads = 3 * 128;
constexpr int kStages = 8;
constexpr int kRowBytes = 2 * kDepth * kRows, kStageBytes = kRowBytes + kDepth / 2 * kColumns;
constexpr int kBytes = 1024 + kStages * kStageBytes + 2 * kStages * 8;

// y_map: boxes of 64 k by 128 rows of y. w_map: boxes of 8 word rows by 32 columns, 8 per stage, one for each warp.
__global__ void __launch_bounds__(kThreads, 1)
    many_rows(const __grid_constant__ CUtensorMap y_map, const __grid_constant__ CUtensorMap w_map, llmk::Int4Layer w,
              Output output) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(16) unsigned char shared[];
    unsigned char* stages = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* full = reinterpret_cast<uint64_t*>(stages + kStages * kStageBytes);  // [kStages]: the tile has arrived
    uint64_t* empty = full + kStages;  // [kStages] mbarriers: all eight warps have used the tile
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, kColumns / 32);
        }
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    // Blocks with neighboring numbers have the same columns, so that their words come from L2.
    const int tile_rows = (output.rows + kRows - 1) / kRows;
    const int tiles = tile_rows * ((w.out_features + kColumns - 1) / kColumns), steps = w.in_features / kDepth;
    llmk::Ring<kStages> ring;
    if (threadIdx.x < 128) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                for (int k = 0; k < steps; ++k, ring.next()) {
                    unsigned char* stage = stages + ring.stage * kStageBytes;
                    uint64_t* arrived = full + ring.stage;
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    llmk::mbarrier_arrive_expect_tx(arrived, kStageBytes);
                    llmk::tma_load(stage, &y_map, arrived, k * kDepth, tile % tile_rows * kRows, 0);
                    llmk::tma_load(stage + kRowBytes, &w_map, arrived, 0, k * kDepth / 8,
                                   tile / tile_rows * kColumns / 32);
                }
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
        // This lane's four of the warp's 32 columns, chosen so that eight lanes read 16 bytes each from all 32 banks.
        const int four = i / 2 + i % 2 * 4;
        const int group_steps = w.group_size / kDepth, groups = (steps + group_steps - 1) / group_steps;

        // Scales and zeros are loaded one group ahead. The last group of a tile is followed by the first one of the
        // next tile.
        int next_tile = blockIdx.x, next_group = 0;
        uint2 next_scales = make_uint2(0, 0);
        unsigned next_zeros = 0;
        auto fetch = [&] {
            if (next_tile >= tiles) return;
            const int column = min(next_tile / tile_rows * kColumns + 32 * warp + 4 * four, w.out_features - 4);
            const size_t at = static_cast<size_t>(next_group) * w.out_features + column;
            next_scales = *reinterpret_cast<const uint2*>(w.scales + at);
            next_zeros = w.qzeros[at / 8];
            if (++next_group == groups) {
                next_group = 0;
                next_tile += gridDim.x;
            }
        };
        fetch();
        __half2 low[4], high[4], scale[4];
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            float sums[2][kRows / 2];  // [j]: columns 2 j and 2 j + 1 of the four, in all rows
            unsigned a[2][2][2][4];    // operand A: [half of a stage][16 k][j]
            int left = 0;              // remaining steps of this group
            for (int k = 0; k < steps; ++k, ring.next()) {
                if (left == 0) {
                    left = group_steps;
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        const __half2 two = llmk::as_half2(c < 2 ? next_scales.x : next_scales.y);
                        scale[c] = c % 2 == 0 ? __low2half2(two) : __high2half2(two);
                        llmk::constants((next_zeros >> (four % 2 * 16 + 4 * c) & 15) + 1, low[c], high[c]);
                    }
                    fetch();
                }
                --left;
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                const unsigned char* stage = stages + ring.stage * kStageBytes;
                const uint64_t b = llmk::make_smem_desc(stage);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = 4 * half + t;  // a row of 32 words, swizzled: 128 bytes
                    const unsigned char* from = stage + kRowBytes + warp * 1024 + row * 128 + (four ^ row) * 16;
                    llmk::Four words;
                    words.vector = *reinterpret_cast<const uint4*>(from);
                    llmk::wgmma_wait_group<1>();  // wait for the wgmmas of the same half of the previous stage
                    if (half == 1) {  // a branch around the arrive alone would make ptxas serialize the wgmmas
                        __syncwarp();
                        if (lane == 0 && k > 0) llmk::mbarrier_arrive(empty + (ring.stage + kStages - 1) % kStages);
                    }
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        __half2 weight[4];
                        llmk::unpack(words.word[c], low[c], high[c], weight);
#pragma unroll
                        for (int p = 0; p < 4; ++p)
                            a[half][p / 2][c / 2][p % 2 * 2 + c % 2] = llmk::as_bits(__hmul2(weight[p], scale[c]));
                    }
                    llmk::wgmma_fence();
#pragma unroll
                    for (int p = 0; p < 2; ++p) {
#pragma unroll
                        for (int j = 0; j < 2; ++j)
                            llmk::wgmma_rs<__half, false>(sums[j], a[half][p][j], b + 2 * (2 * half + p),
                                                          k > 0 || half > 0 || p > 0);
                    }
                    llmk::wgmma_commit_group();
                }
            }
            llmk::wgmma_wait_group<0>();
            __syncwarp();
            if (lane == 0) llmk::mbarrier_arrive(empty + (ring.stage + kStages - 1) % kStages);

            const int column = tile / tile_rows * kColumns + 32 * warp + 4 * four, first_row = tile % tile_rows * kRows;
            if (column >= w.out_features) continue;
            float bias[4] = {};
            if (output.has_bias) {
#pragma unroll
                for (int c = 0; c < 4; ++c) bias[c] = __half2float(output.bias[column + c]);
            }
            __half* to = output.at(first_row, column);  // the four columns are in one part of out
#pragma unroll
            for (int g = 0; g < kRows / 8; ++g) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int row = 8 * g + 2 * t + e;
                    if (first_row + row >= output.rows) continue;
                    const float *left_two = sums[0] + 4 * g + e, *right_two = sums[1] + 4 * g + e;
                    *reinterpret_cast<uint2*>(to + static_cast<size_t>(row) * output.width) =
                        make_uint2(llmk::pack_pair<__half>(left_two[0] + bias[0], left_two[2] + bias[1]),
                                   llmk::pack_pair<__half>(right_two[0] + bias[2], right_two[2] + bias[3]));
                }
            }
        }
    }
#else
    __trap();  // this kernel is launched on Hopper only; the file was compiled for another GPU
#endif
}

void launch(const __half* y, const llmk::Int4Layer& w, const Output& output, int sms, cudaStream_t stream) {
    CUtensorMap y_map, w_map;
    // TMA copies each word as two 16-bit elements, so a row of a box with 32 columns has 64 elements.
    const __half* words = reinterpret_cast<const __half*>(w.qweight);
    if (llmk::make_tensor_map(&y_map, y, w.in_features, output.rows, 1, w.in_features, 8, kRows) != cudaSuccess ||
        llmk::make_tensor_map(&w_map, words, 64, w.in_features / 8, w.out_features / 32, 2LL * w.out_features, 64,
                              kDepth / 8, kColumns / 32) != cudaSuccess)
        return;
    const int tiles = (output.rows + kRows - 1) / kRows * ((w.out_features + kColumns - 1) / kColumns);
    cudaFuncSetAttribute(many_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    const int blocks = tiles < sms ? tiles : sms;
    many_rows<<<blocks, kThreads, kBytes, stream>>>(y_map, w_map, w, output);
}

}  // namespace hopper

extern "C" void ln_qkv_gptq(const __half* x, const __half* weight, const __half* beta, const int* qweight,
                            const int* qzeros, const __half* scales, const int* g_idx, const __half* bias,
                            __half* normalized, __half* out, int batch, int length, int in_features, int group_size,
                            bool act_order, bool has_bias, float eps, cudaStream_t stream) {
    const int rows = batch * length;
    if (rows == 0 || in_features == 0) return;
    const llmk::Int4Layer w = {qweight, qzeros, scales, g_idx, in_features, 3 * in_features, group_size, act_order};
    const Norm norm = {x, weight, beta, in_features, eps};
    const Output output = {bias, out, rows, in_features, has_bias};
    if (rows <= kFewRows) {
        const S share(w, rows, true);
        if (share.segment > 0) {
            const Normalized job = {norm, output, nullptr, nullptr, 0, 0, share.pitch, share.parts};
            const auto kernel = share.rows > 8 ? (share.plain ? few_rows<2, true> : few_rows<2, false>)
                                               : (share.plain ? few_rows<1, true> : few_rows<1, false>);
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, share.bytes);
            kernel<<<share.grid, S::kThreads, share.bytes, stream>>>(w, share, job);
            return;
        }
    }
    int device = 0, generation = 0, sms = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const bool by_wgmma =
        generation == 9 && !act_order && group_size % hopper::kDepth == 0 && in_features % hopper::kDepth == 0;
    layer_norm<<<rows, 32 * kNormWarps, 0, stream>>>(norm, normalized, by_wgmma);
    if (by_wgmma) {
        hopper::launch(normalized, w, output, sms, stream);
        return;
    }
    const bool plain = !act_order && group_size % kStep == 0 && in_features % (kSteps * kStep) == 0;
    const dim3 grid((rows + kTileRows - 1) / kTileRows, (w.out_features + kTileColumns - 1) / kTileColumns);
    const int bytes = sizeof(TileStage) * kTileStages;
    const auto kernel = plain ? many_rows<true> : many_rows<false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, kTileThreads, bytes, stream>>>(normalized, w, output);
}
