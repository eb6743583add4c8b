// LayerNorm, then query, key and value by one product with int4 weights in GPTQ's format: w = (q - zero) * scale.
//
//   x: [rows, C]     weight, beta: [C]     bias: [3 C]     out: [3, rows, C]     rows = batch * length
//   qweight: [C / 8, 3 C]     qzeros: [groups, 3 C / 8]     scales: [groups, 3 C]     g_idx: [C]     y: [rows, C]
//
// Few rows: the weights are the work, as in gptq_linear. Each block normalises all rows for itself, into shared memory,
// while its first weights are on their way: one kernel, and nothing but x, the weights and out crosses global memory.
//
// Many rows: the tensor cores are the work, and a norm in every block would be done again for every 256 columns. So a
// first kernel writes the normalised rows, y, and a second multiplies tiles of 128 rows by 256 columns. A warp owns 32 columns
// and all 128 rows of the tile, so each word of qweight is unpacked by one warp of the block only, in registers.
//
// In both the *weights* are operand A of the tensor core's product, 16 columns at a time. Lane (i, t) = (lane / 4, lane %
// 4) unpacks the words of columns 4 i ... 4 i + 3 at k = 8 t ... 8 t + 7 of a step of 32, which gives pairs (0, 4), (1, 5), (2, 6), (3, 7).
// y is kept in that order, eight by eight: 0 4 1 5 2 6 3 7. So a lane's part of operand B is 16 bytes that lie side by side.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/int4.cuh"
#include "llmk/mma.cuh"

constexpr int kStep = 32;  // values of k that a warp multiplies at a time
constexpr unsigned kAllLanes = 0xffffffffu;

struct Weights {
    const int* qweight;
    const int* qzeros;
    const __half* scales;
    const int* g_idx;
    int in_features, out_features, group_size;
    bool act_order;
};

// What is made of the product, and where it goes.
struct Output {
    const __half* bias;
    __half* out;
    int rows, width;  // the width of out is C: columns C ... 2 C - 1 of the product are its second part
    bool has_bias;

    __device__ __half* at(int row, int column) const {
        const int part = column / width;
        return out + (static_cast<size_t>(part) * rows + row) * width + (column - part * width);
    }
};

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

// ------------------------------------------------------------------------------------------------------- LayerNorm

// What is kept of a set of elements. The variance is deviations / count.
struct Moments {
    float count, mean, deviations;  // deviations: the sum of (element - mean)^2
};

// Two sets as one: Chan's formula, of which Welford's is the case of a single new element.
__device__ __forceinline__ Moments join(const Moments& a, const Moments& b) {
    const float count = a.count + b.count, share = count > 0 ? b.count / count : 0.0f, apart = b.mean - a.mean;
    return {count, a.mean + apart * share, a.deviations + b.deviations + apart * apart * a.count * share};
}

// Eight neighbours as floats.
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

// The moments of a warp's part of a row: eights first, first + step, ... of each lane. Every lane gets them.
__device__ Moments moments_of(const __half* row, int width, int first, int step) {
    Moments all = {0, 0, 0};
    for (int eight = first; eight < width / 8; eight += step) {
        float x[8];
        load_eight(row + 8 * eight, x);
        Moments own = {8, 0, 0};
#pragma unroll
        for (int j = 0; j < 8; ++j) own.mean += x[j] * 0.125f;
#pragma unroll
        for (int j = 0; j < 8; ++j) own.deviations += (x[j] - own.mean) * (x[j] - own.mean);
        all = join(all, own);
    }
#pragma unroll
    for (int reach = 16; reach > 0; reach /= 2) {
        const Moments other = {__shfl_xor_sync(kAllLanes, all.count, reach),
                               __shfl_xor_sync(kAllLanes, all.mean, reach),
                               __shfl_xor_sync(kAllLanes, all.deviations, reach)};
        all = join(all, other);
    }
    return all;
}

// Writes the same eights of the normalised row, each in the order 0 4 1 5 2 6 3 7.
__device__ void normalize(const __half* row, const __half* weight, const __half* beta, __half* y, const Moments& m,
                          float eps, int width, int first, int step) {
    const float factor = rsqrtf(m.deviations / m.count + eps);
    for (int eight = first; eight < width / 8; eight += step) {
        float x[8], w[8], b[8];
        load_eight(row + 8 * eight, x);
        load_eight(weight + 8 * eight, w);
        load_eight(beta + 8 * eight, b);
#pragma unroll
        for (int j = 0; j < 8; ++j) x[j] = (x[j] - m.mean) * factor * w[j] + b[j];
        const uint4 bits =
            make_uint4(llmk::as_bits(__floats2half2_rn(x[0], x[4])), llmk::as_bits(__floats2half2_rn(x[1], x[5])),
                       llmk::as_bits(__floats2half2_rn(x[2], x[6])), llmk::as_bits(__floats2half2_rn(x[3], x[7])));
        *reinterpret_cast<uint4*>(y + 8 * eight) = bits;
    }
}

constexpr int kNormWarps = 4;

// A block for each row.
__global__ void __launch_bounds__(32 * kNormWarps)
    layer_norm(const __half* __restrict__ x, const __half* __restrict__ weight, const __half* __restrict__ beta,
               __half* __restrict__ y, int width, float eps) {
    __shared__ Moments parts[kNormWarps];
    const size_t from = static_cast<size_t>(blockIdx.x) * width;
    const Moments own = moments_of(x + from, width, threadIdx.x, blockDim.x);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    Moments all = {0, 0, 0};
#pragma unroll
    for (int warp = 0; warp < kNormWarps; ++warp) all = join(all, parts[warp]);
    normalize(x + from, weight, beta, y + from, all, eps, width, threadIdx.x, blockDim.x);
}

// -------------------------------------------------------------------------------------------------------- few rows

constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kColumns = 32;          // that a block makes at a time
constexpr int kPitch = kColumns + 4;  // floats from row to row of the partial sums, so that stores meet no conflict
constexpr int kStages = 6;            // steps that are on their way
constexpr int kSMs = 132;             // of an H200: about as many blocks are started
constexpr int kFewRows = 64;          // up to here the weights are read again for every 16 rows
constexpr int kSharedBytes = 227 * 1024;

// What is on its way for one step.
struct Stage {
    uint4 words[kThreads];    // each lane's own: of its four columns
    uint2 scales[kWarps][8];  // of the four columns of each quad, where a group begins with this step
    int zeros[kWarps][8];     // the words that hold theirs
};

// Elements from row to row of y: two rows lie in different halves of the 32 banks.
__host__ __device__ constexpr int y_pitch(int width) {
    return (width + 31) / 32 * 32 + ((width + 31) / 32 % 2 ? 0 : 32);
}

template <int kTiles>
constexpr int few_rows_bytes(int width) {
    return kStages * static_cast<int>(sizeof(Stage)) + 8 * kTiles * 2 * y_pitch(width);
}

// kTiles: of 8 rows each. kPlain: the groups are in order, all steps are whole, and none lies in two groups.
template <int kTiles, bool kPlain>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows(const __half* __restrict__ x, const __half* __restrict__ norm_weight, const __half* __restrict__ beta,
             Weights w, Output output, float eps) {
    constexpr int kRows = 8 * kTiles;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ __align__(16) float partial[kWarps][kRows][kPitch];
    __shared__ Moments moments[kWarps];
    Stage* stages = reinterpret_cast<Stage*>(shared);
    __half* y = reinterpret_cast<__half*>(shared + kStages * sizeof(Stage));  // [kRows][pitch]
    const int pitch = y_pitch(w.in_features);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int first_row = blockIdx.y * kRows, rows = min(kRows, output.rows - first_row);

    const int steps = (w.in_features + kStep - 1) / kStep, own_steps = (steps + kWarps - 1) / kWarps;
    const int first_step = min(warp * own_steps, steps), end_step = min(first_step + own_steps, steps);
    const int tiles = (w.out_features + kColumns - 1) / kColumns;

    // What lies past the last column is not stored in the end: the last ones are read in its place.
    auto column_of = [&](int tile) { return min(tile * kColumns + 4 * i, w.out_features - 4); };
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
            Stage& s = stages[to];
            const int column = column_of(next_tile);
            const bool there = kPlain || next_step * kStep + 8 * t < w.in_features;
            const int* word = w.qweight + static_cast<size_t>(t) * w.out_features + column;
            word += static_cast<size_t>(static_cast<unsigned>(next_step)) * step_words;
            __pipeline_memcpy_async(&s.words[threadIdx.x], there ? word : w.qweight, 16, there ? 0 : 16);
            if (kPlain && left == 0) {
                if (t == 0) {
                    const size_t at = static_cast<size_t>(next_group) * w.out_features + column;
                    __pipeline_memcpy_async(&s.scales[warp][i], w.scales + at, 8);
                    __pipeline_memcpy_async(&s.zeros[warp][i], w.qzeros + at / 8, 4);
                }
                ++next_group;
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
    for (int s = 0; s < kStages - 1; ++s) fetch(s);

    // The norm. Several warps share a row where there are fewer rows than warps.
    int parts = kWarps;
    while (parts * rows > kWarps) parts /= 2;
    const int row = warp / parts, first = warp % parts * 32 + lane;
    const __half* x_row = x + static_cast<size_t>(first_row + row) * w.in_features;
    if (row < rows) {
        const Moments own = moments_of(x_row, w.in_features, first, 32 * parts);
        if (lane == 0) moments[warp] = own;
    }
    __syncthreads();
    if (row < rows) {
        Moments all = moments[row * parts];
        for (int part = 1; part < parts; ++part) all = join(all, moments[row * parts + part]);
        normalize(x_row, norm_weight, beta, y + row * pitch, all, eps, w.in_features, first, 32 * parts);
    }
    __syncthreads();

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
            __pipeline_wait_prior(kStages - 2);
            __syncwarp();  // all lanes' copies of this step have arrived, and all are done with the step before
            fetch(stage == 0 ? kStages - 1 : stage - 1);
            const Stage& s = stages[stage];
            stage = stage == kStages - 1 ? 0 : stage + 1;

            llmk::Four words;
            words.vector = s.words[threadIdx.x];
            __half2 weight[4][4];  // of column 4 i + c, pair by pair
            if (kPlain) {
                if (group_left == 0) {
                    end_of_group();
                    group_left = group_then;
                    group_then = group_steps;
                    const unsigned zeros = static_cast<unsigned>(s.zeros[warp][i]) >> (column_of(tile) % 8 * 4);
#pragma unroll
                    for (int c = 0; c < 4; ++c) llmk::constants((zeros >> 4 * c & 15) + 1, low[c], high[c]);
                    const uint2 halves = s.scales[warp][i];
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
                llmk::Four b = {make_uint4(0, 0, 0, 0)};
                if (8 * r + i < rows && (kPlain || step * kStep + 8 * t < w.in_features)) {
                    b.vector = *reinterpret_cast<const uint4*>(y + (8 * r + i) * pitch + step * kStep + 8 * t);
                }
#pragma unroll
                for (int p = 0; p < 4; p += 2) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const __half2(&upper)[4] = weight[2 * j], (&lower)[4] = weight[2 * j + 1];
                        const unsigned a[4] = {llmk::as_bits(upper[p]), llmk::as_bits(lower[p]),
                                               llmk::as_bits(upper[p + 1]), llmk::as_bits(lower[p + 1])};
                        llmk::multiply<__half>(product[r][j], a, b.word[p], b.word[p + 1]);
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
            const int out_row = o / kColumns, c = o % kColumns, to = tile * kColumns + c;
            if (to >= w.out_features) continue;
            float sum = output.has_bias ? __half2float(output.bias[to]) : 0.0f;
#pragma unroll
            for (int part = 0; part < kWarps; ++part) sum += partial[part][out_row][c];
            *output.at(first_row + out_row, to) = __float2half(sum);
        }
        __syncthreads();  // the partial sums of the next tile may take their place
    }
}

template <int kTiles, bool kPlain>
void launch_few(const __half* x, const __half* norm_weight, const __half* beta, const Weights& w, const Output& output,
                float eps, cudaStream_t stream) {
    const int tiles = (w.out_features + kColumns - 1) / kColumns;
    const int tiles_each = (tiles + kSMs - 1) / kSMs;
    const dim3 grid((tiles + tiles_each - 1) / tiles_each, (output.rows + 8 * kTiles - 1) / (8 * kTiles));
    const int bytes = few_rows_bytes<kTiles>(w.in_features);
    const auto kernel = few_rows<kTiles, kPlain>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, kThreads, bytes, stream>>>(x, norm_weight, beta, w, output, eps);
}

// ------------------------------------------------------------------------------------------------------- many rows

constexpr int kTileWarps = 8;
constexpr int kTileThreads = 32 * kTileWarps;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 32 * kTileWarps;
constexpr int kSteps = 2;       // of a stage
constexpr int kTileStages = 5;  // that are in shared memory: one in use, the others on their way
constexpr int kTogether = 4;    // stripes of 8 rows whose products are started one after the other

struct TileStage {
    // 64 bytes to a row, so eight lanes read two rows, all 32 banks. Of the second step the two change places: the lanes that
    // copy a row's pieces of both steps then meet no conflict either.
    uint4 y[kSteps][kTileRows][kStep / 8];
    uint4 words[kSteps][kTileThreads];    // each lane's own
    uint2 scales[kSteps][kTileWarps][8];  // of the four columns of each quad
    int zeros[kSteps][kTileWarps][8];
};

template <bool kPlain>
__global__ void __launch_bounds__(kTileThreads, 1) many_rows(const __half* __restrict__ y, Weights w, Output output) {
    constexpr int kStripes = kTileRows / 8;
    extern __shared__ __align__(16) unsigned char shared[];
    TileStage* stages = reinterpret_cast<TileStage*>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
    const int first_row = blockIdx.x * kTileRows, rows = min(kTileRows, output.rows - first_row);
    // This lane's columns, four of them. What lies past the last row or column is not stored in the end: the last ones are
    // read in its place.
    const int to = blockIdx.y * kTileColumns + warp * 32 + 4 * i, column = min(to, w.out_features - 4);
    const unsigned step_words = kStep / 8 * w.out_features;

    // This thread copies eights of y at the same k, from rows that lie a quarter of the tile apart.
    constexpr int kEights = kSteps * kStep / 8, kApart = kTileThreads / kEights;
    const int eight = threadIdx.x % kEights, first = threadIdx.x / kEights;
    int from[kTileRows / kApart];  // elements from the first row of the tile
#pragma unroll
    for (int n = 0; n < kTileRows / kApart; ++n) {
        from[n] = min(first + n * kApart, rows - 1) * w.in_features + 8 * eight;
    }
    y += static_cast<size_t>(first_row) * w.in_features;

    const int stage_count = (w.in_features + kSteps * kStep - 1) / (kSteps * kStep);
    int next = 0, group = 0, left = kPlain ? w.group_size : 0;  // left: values of k that the group still has
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

    float sums[kStripes][2][4] = {};  // columns 4 i + 2 j (e < 2) and the next, rows 2 t (even e) and the next
    for (int number = 0; number < stage_count; ++number) {
        __pipeline_wait_prior(kTileStages - 2);
        __syncthreads();  // this stage is here, and nobody reads the one before any more
        fetch();
        const TileStage& s = stages[number % kTileStages];
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            llmk::Four words;
            words.vector = s.words[step][threadIdx.x];
            __half2 weight[4][4];  // of column 4 i + c, pair by pair, finished
            if (kPlain) {
                const unsigned zeros = static_cast<unsigned>(s.zeros[step][warp][i]) >> (column % 8 * 4);
                const uint2 halves = s.scales[step][warp][i];
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const __half2 two = llmk::as_half2(c < 2 ? halves.x : halves.y);
                    const __half2 scale = c % 2 == 0 ? __low2half2(two) : __high2half2(two);
                    __half2 low, high;
                    llmk::constants((zeros >> 4 * c & 15) + 1, low, high);
                    llmk::unpack(words.word[c], low, high, weight[c]);
#pragma unroll
                    for (int p = 0; p < 4; ++p) weight[c][p] = __hmul2(weight[c][p], scale);
                }
            } else {
                scaled(words.word, w, (number * kSteps + step) * kStep + 8 * t, column, weight);
            }
#pragma unroll
            for (int r = 0; r < kStripes; r += kTogether) {
                llmk::Four b[kTogether];
#pragma unroll
                for (int g = 0; g < kTogether; ++g) {
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
                        for (int g = 0; g < kTogether; ++g)
                            llmk::multiply<__half>(sums[r + g][j], a, b[g].word[p], b[g].word[p + 1]);
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
            *reinterpret_cast<uint2*>(output.at(first_row + row, column)) = four;  // the four lie in one part
        }
    }
}

extern "C" void ln_qkv_gptq(const __half* x, const __half* weight, const __half* beta, const int* qweight,
                            const int* qzeros, const __half* scales, const int* g_idx, const __half* bias,
                            __half* normalized, __half* out, int batch, int length, int in_features, int group_size,
                            bool act_order, bool has_bias, float eps, cudaStream_t stream) {
    const int rows = batch * length;
    if (rows == 0 || in_features == 0) return;
    const Weights w = {qweight, qzeros, scales, g_idx, in_features, 3 * in_features, group_size, act_order};
    const Output output = {bias, out, rows, in_features, has_bias};
    const bool plain = !act_order && group_size % kStep == 0 && in_features % (kSteps * kStep) == 0;
    constexpr int kOthers = 1024 + static_cast<int>(sizeof(float)) * kWarps * 8 * kPitch;  // of a tile of 8 rows
    if (rows <= kFewRows && few_rows_bytes<1>(in_features) + kOthers <= kSharedBytes) {
        const bool two = rows > 8 && few_rows_bytes<2>(in_features) + 2 * kOthers <= kSharedBytes;
        const auto start = two ? (plain ? launch_few<2, true> : launch_few<2, false>)
                               : (plain ? launch_few<1, true> : launch_few<1, false>);
        start(x, weight, beta, w, output, eps, stream);
        return;
    }
    layer_norm<<<rows, 32 * kNormWarps, 0, stream>>>(x, weight, beta, normalized, in_features, eps);
    const dim3 grid((rows + kTileRows - 1) / kTileRows, (w.out_features + kTileColumns - 1) / kTileColumns);
    const int bytes = sizeof(TileStage) * kTileStages;
    const auto kernel = plain ? many_rows<true> : many_rows<false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, kTileThreads, bytes, stream>>>(normalized, w, output);
}
