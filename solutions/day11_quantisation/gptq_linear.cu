// out = x w + bias for a few rows of f16 and int4 weights in GPTQ's format: w = (q - zero) * scale, sums in f32.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]     g_idx: [in_features]     bias: [out_features]
//
// The weights are the work: each is read once, 16 bytes a lane, and several such loads of every lane are on their way at
// any time. A block makes 32 columns of out at a time, each of its warps a part of in_features, and the parts are added up
// in shared memory, in the same order in every run.
//
// A warp multiplies 32 columns by 32 values of k in one step, on tensor cores, where the *weights* are operand A (16 columns
// at a time) and the rows of x the columns of operand B: 8 rows cost one product, 16 rows two. Lane (i, t) = (lane /
// 4, lane % 4) loads the words of columns 4 i ... 4 i + 3 that hold k = 8 t ... 8 t + 7 of the step. The tensor core wants other
// k of each lane; but a sum may be taken in any order, so long as weights and x agree, and each lane takes x at its own k.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/int4.cuh"
#include "llmk/mma.cuh"

constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kColumns = 32;          // that a block makes at a time
constexpr int kStep = 32;             // values of k that a warp multiplies at a time
constexpr int kPitch = kColumns + 4;  // floats from row to row of the partial sums, so that stores meet no conflict
constexpr int kSMs = 132;             // of an H200: about as many blocks are started

struct Weights {
    const int* qweight;
    const int* qzeros;
    const __half* scales;
    const int* g_idx;
    int in_features, out_features, group_size;
    bool act_order;
};

// Eight neighbours of a row of x as the same four pairs.
__device__ __forceinline__ void pair_up(const llmk::Four& x, unsigned (&pairs)[4]) {
    pairs[0] = __byte_perm(x.word[0], x.word[2], 0x5410);
    pairs[1] = __byte_perm(x.word[0], x.word[2], 0x7632);
    pairs[2] = __byte_perm(x.word[1], x.word[3], 0x5410);
    pairs[3] = __byte_perm(x.word[1], x.word[3], 0x7632);
}

// Unpacked weights where k and its neighbours may belong to different groups: finished weights, rounded once.
__device__ void scaled(const unsigned (&words)[4], const Weights& w, int k, int column, __half2 (&weight)[4][4]) {
    const bool there = k < w.in_features;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        __half value[2][4] = {};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            if (!there) continue;
            const int place = p + 4 * side;
            const size_t group = w.act_order ? w.g_idx[k + place] : (k + place) / w.group_size;
            const size_t at = group * w.out_features + column;
            const unsigned zeros = static_cast<unsigned>(w.qzeros[at / 8]) >> (column % 8 * 4);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int q = words[c] >> 4 * place & 15, zero = (zeros >> 4 * c & 15) + 1;
                value[side][c] = __hmul(__int2half_rn(q - zero), w.scales[at + c]);
            }
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) weight[c][p] = __halves2half2(value[0][c], value[1][c]);
    }
}

// What is on its way for one step: each thread copies its own entries, and reads no others.
template <int kTiles>
struct Stage {
    uint4 words[kThreads];      // of the lane's four columns
    uint4 x[kTiles][kThreads];  // of row i, and of row i + 8
    uint2 scales[kThreads];     // of the four columns, where a group begins with this step
    int zeros[kThreads];        // the word that holds theirs
};

template <int kTiles>
constexpr int kStages = kTiles == 1 ? 8 : 6;  // steps that are on their way

// kTiles: of 8 rows each. kPlain: the groups are in order, all steps are whole, and none lies in two groups.
template <int kTiles, bool kPlain>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows(const __half* __restrict__ x, Weights w, const __half* __restrict__ bias, __half* __restrict__ out,
             int rows, bool has_bias) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ __align__(16) float partial[kWarps][8 * kTiles][kPitch];
    Stage<kTiles>* stages = reinterpret_cast<Stage<kTiles>*>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const size_t first_row = static_cast<size_t>(blockIdx.y) * 8 * kTiles;
    rows = min(8 * kTiles, rows - static_cast<int>(first_row));
    x += first_row * w.in_features;
    out += first_row * w.out_features;

    const int steps = (w.in_features + kStep - 1) / kStep, own_steps = (steps + kWarps - 1) / kWarps;
    const int first_step = min(warp * own_steps, steps), end_step = min(first_step + own_steps, steps);
    const int tiles = (w.out_features + kColumns - 1) / kColumns;
    // What lies past the last row or column is not stored in the end: the last ones are read in its place.
    auto column_of = [&](int tile) { return min(tile * kColumns + 4 * i, w.out_features - 4); };
    const __half* x_row[kTiles];
#pragma unroll
    for (int r = 0; r < kTiles; ++r)
        x_row[r] = x + static_cast<size_t>(min(8 * r + i, rows - 1)) * w.in_features + 8 * t;
    const unsigned step_words = kStep / 8 * w.out_features;

    // Steps of a group: of the first one of this warp, and of the others.
    const int group_steps = kPlain ? w.group_size / kStep : 0;
    const int first_group = kPlain ? first_step / group_steps : 0;
    const int first_part = (first_group + 1) * group_steps - first_step;

    // The next step to ask for. After the last one of a tile comes the first one of the next tile. Scales and zeros are
    // asked for with the first step of their group.
    int next_tile = first_step < end_step ? blockIdx.x : tiles, next_step = first_step;
    int next_group = first_group, left = 0, then = first_part;
    auto fetch = [&](int to) {
        if (next_tile < tiles) {
            Stage<kTiles>& s = stages[to];
            const int column = column_of(next_tile);
            const bool there = kPlain || next_step * kStep + 8 * t < w.in_features;
            const int* word = w.qweight + static_cast<size_t>(t) * w.out_features + column;
            word += static_cast<size_t>(static_cast<unsigned>(next_step)) * step_words;
            __pipeline_memcpy_async(&s.words[threadIdx.x], there ? word : w.qweight, 16, there ? 0 : 16);
#pragma unroll
            for (int r = 0; r < kTiles; ++r) {
                __pipeline_memcpy_async(&s.x[r][threadIdx.x], there ? x_row[r] + next_step * kStep : x, 16,
                                        there ? 0 : 16);
            }
            if (kPlain && left == 0) {
                const size_t at = static_cast<size_t>(next_group++) * w.out_features + column;
                __pipeline_memcpy_async(&s.scales[threadIdx.x], w.scales + at, 8);
                __pipeline_memcpy_async(&s.zeros[threadIdx.x], w.qzeros + at / 8, 4);
                left = then;
                then = group_steps;
            }
            --left;
            if (++next_step == end_step) {
                next_tile += gridDim.x;
                next_step = first_step;
                next_group = first_group;
                left = 0;
                then = first_part;
            }
        }
        __pipeline_commit();
    };
    for (int s = 0; s < kStages<kTiles> - 1; ++s) fetch(s);

    int stage = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        // Columns 4 i + 2 j (e < 2) and the next, rows 2 t (even e) and the next: of this group so far, and of those before.
        float product[kTiles][2][4] = {}, sums[kTiles][2][4] = {};
        __half2 low[4], high[4];  // 1024 + zero, and -(64 + zero)
        float scale[4] = {};
        auto end_of_group = [&] {
#pragma unroll
            for (int r = 0; r < kTiles; ++r) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        sums[r][j][e] += kPlain ? product[r][j][e] * scale[2 * j + e / 2] : product[r][j][e];
                        product[r][j][e] = 0;
                    }
                }
            }
        };
        int group_left = 0, group_then = first_part;
        for (int step = first_step; step < end_step; ++step) {
            fetch(stage == 0 ? kStages<kTiles> - 1 : stage - 1);
            __pipeline_wait_prior(kStages<kTiles> - 1);
            const Stage<kTiles>& s = stages[stage];
            stage = stage == kStages<kTiles> - 1 ? 0 : stage + 1;

            llmk::Four words;
            words.vector = s.words[threadIdx.x];
            __half2 weight[4][4];  // of column 4 i + c, pair by pair
            if (kPlain) {
                if (group_left == 0) {
                    end_of_group();
                    group_left = group_then;
                    group_then = group_steps;
                    const unsigned zeros = static_cast<unsigned>(s.zeros[threadIdx.x]) >> (column_of(tile) % 8 * 4);
#pragma unroll
                    for (int c = 0; c < 4; ++c) llmk::constants((zeros >> 4 * c & 15) + 1, low[c], high[c]);
                    const uint2 halves = s.scales[threadIdx.x];
                    const float2 left_two = __half22float2(llmk::as_half2(halves.x));
                    const float2 right_two = __half22float2(llmk::as_half2(halves.y));
                    scale[0] = left_two.x, scale[1] = left_two.y, scale[2] = right_two.x, scale[3] = right_two.y;
                }
                --group_left;
#pragma unroll
                for (int c = 0; c < 4; ++c) llmk::unpack(words.word[c], low[c], high[c], weight[c]);
            } else {
                scaled(words.word, w, step * kStep + 8 * t, column_of(tile), weight);
            }
#pragma unroll
            for (int r = 0; r < kTiles; ++r) {
                llmk::Four eight;
                eight.vector = s.x[r][threadIdx.x];
                unsigned b[4];
                pair_up(eight, b);
#pragma unroll
                for (int p = 0; p < 4; p += 2) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const __half2(&upper)[4] = weight[2 * j], (&lower)[4] = weight[2 * j + 1];
                        const unsigned a[4] = {llmk::as_bits(upper[p]), llmk::as_bits(lower[p]),
                                               llmk::as_bits(upper[p + 1]), llmk::as_bits(lower[p + 1])};
                        llmk::multiply<__half>(product[r][j], a, b[p], b[p + 1]);
                    }
                }
            }
        }
        end_of_group();

#pragma unroll
        for (int r = 0; r < kTiles; ++r) {
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const float4 four =
                    make_float4(sums[r][0][odd], sums[r][0][2 + odd], sums[r][1][odd], sums[r][1][2 + odd]);
                *reinterpret_cast<float4*>(&partial[warp][8 * r + 2 * t + odd][4 * i]) = four;
            }
        }
        __syncthreads();
        for (int o = threadIdx.x; o < rows * kColumns; o += kThreads) {
            const int row = o / kColumns, c = o % kColumns, to = tile * kColumns + c;
            if (to >= w.out_features) continue;
            float sum = has_bias ? __half2float(bias[to]) : 0.0f;
#pragma unroll
            for (int part = 0; part < kWarps; ++part) sum += partial[part][row][c];
            out[row * static_cast<size_t>(w.out_features) + to] = __float2half(sum);
        }
        __syncthreads();  // the partial sums of the next tile may take their place
    }
}

template <int kTiles, bool kPlain>
void launch(const __half* x, const Weights& w, const __half* bias, __half* out, int rows, bool has_bias,
            cudaStream_t stream) {
    const int tiles = (w.out_features + kColumns - 1) / kColumns;
    const int tiles_each = (tiles + kSMs - 1) / kSMs;
    const dim3 grid((tiles + tiles_each - 1) / tiles_each, (rows + 8 * kTiles - 1) / (8 * kTiles));
    const int bytes = sizeof(Stage<kTiles>) * kStages<kTiles>;
    const auto kernel = few_rows<kTiles, kPlain>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, kThreads, bytes, stream>>>(x, w, bias, out, rows, has_bias);
}

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const Weights weights = {qweight, qzeros, scales, g_idx, in_features, out_features, group_size, act_order};
    const bool plain = !act_order && group_size % kStep == 0 && in_features % kStep == 0;
    const auto start =
        rows <= 8 ? (plain ? launch<1, true> : launch<1, false>) : (plain ? launch<2, true> : launch<2, false>);
    start(x, weights, bias, out, rows, has_bias, stream);
}
