// Linear layer on tensor cores through WMMA: f16 or bf16 in, f32 accumulators, out = x weight^T + bias.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "llmk/async_copy.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int kDepth = 64;  // columns of x and weight in one stage
constexpr int kStages = 3;  // stages in flight or in use
// The copy of the tile of x starts in the first step of 16 columns, the copy of the tile of weight in the second, so
// that copies wait less for each other.
constexpr int kSecondPart = 16;
static_assert(kSecondPart < kDepth - 16, "before the wait for the next stage");
constexpr int kVector = 8;    // elements in 16 bytes
constexpr int kBand = 8;      // rows of tiles in a band, see below
constexpr int kEnough = 120;  // blocks that occupy about all SMs of a large GPU: an A100 has 108 SMs, an H200 132
constexpr int kWarpsDown = 4, kWarpsAcross = 2, kWarps = kWarpsDown * kWarpsAcross;
constexpr int kThreads = 32 * kWarps;

// A block computes kDown x kAcross outputs, and each of its warps F x G fragments of them. Each fragment of x is used G
// times, each of weight F times. The larger the tile, the less is fetched from the L2 cache per output.
template <int F, int G>
struct Tile {
    static constexpr int kWarpDown = 16 * F, kWarpAcross = 16 * G;
    static constexpr int kDown = kWarpsDown * kWarpDown, kAcross = kWarpsAcross * kWarpAcross;
    template <typename T, int kRows>
    using Copier = llmk::ColumnCopier<T, kRows, kDepth, kThreads, true>;
    static constexpr int kRow = Copier<__half, kDown>::kPitch;  // 144 bytes: eight rows start in different banks
    // Elements of one stage: a tile of x, then a tile of weight.
    static constexpr int kStage = (kDown + kAcross) * kRow;
    static constexpr int kSumRow = kWarpAcross + 4;  // floats per row of sums
    // Floats of a warp's staging buffer for its sums, 16 rows at a time.
    static constexpr int kWarpSums = 16 * kSumRow;
    static constexpr size_t kBytes = sizeof(short) * kStages * kStage;
    static_assert(kBytes >= sizeof(float) * kWarps * kWarpSums, "the sums pass through the same memory at the end");
};

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
// VECTORS: every row of x and weight starts at a multiple of 16 bytes; out_vectors: so does every row of out
template <typename T, int F, int G, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 1)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ out, int rows, int in_features, int out_features, bool out_vectors) {
    using S = Tile<F, G>;
    constexpr int kRow = S::kRow, kSumRow = S::kSumRow;
    extern __shared__ __align__(128) unsigned char shared[];
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][kDown + kAcross][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kWarps][16][kSumRow], after the last stage
    const int tiles_down = (rows + S::kDown - 1) / S::kDown,
              tiles_across = (out_features + S::kAcross - 1) / S::kAcross;
    // Blocks are numbered band by band: a band is kBand rows of tiles, and is numbered column by column. Blocks that
    // run at the same time then cover a compact part of out, and fetch fewer different rows of x and weight than in a
    // few long rows of tiles.
    const int band = static_cast<int>(blockIdx.x) / (kBand * tiles_across) * kBand;
    const int in_band = static_cast<int>(blockIdx.x) - band * tiles_across, band_tiles = min(kBand, tiles_down - band);
    const int row0 = (band + in_band % band_tiles) * S::kDown;
    const int feature0 = in_band / band_tiles * S::kAcross;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * S::kWarpDown, warp_feature = warp % kWarpsAcross * S::kWarpAcross;
    const int rounds = (in_features + kDepth - 1) / kDepth;

    typename S::template Copier<T, S::kDown> x_copier(x, row0, rows, in_features);
    typename S::template Copier<T, S::kAcross> w_copier(weight, feature0, out_features, in_features);
    // Start to copy a stage, in two parts: its tile of x, and its tile of weight.
    auto copy_x = [&](int round) {
        if (round < rounds) x_copier.template copy<VECTORS>(stages + round % kStages * S::kStage);
    };
    auto copy_weight = [&](int round) {
        if (round < rounds) w_copier.template copy<VECTORS>(stages + round % kStages * S::kStage + S::kDown * kRow);
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };
    auto wait_for_stage = [] {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of the next stage have arrived ...
        __syncthreads();                     // ... and all threads' copies; all warps have used the previous stage
    };

    // The fragments of the next 16 columns are loaded while the previous ones are multiplied.
    llmk::OperandA<T> a[2][F];
    llmk::OperandB<T> b[2][G];
    auto load_fragments = [&](int to, int round, int k) {
        const T* x_tile = stages + round % kStages * S::kStage + k;
        const T* w_tile = x_tile + S::kDown * kRow;
#pragma unroll
        for (int i = 0; i < F; ++i) llmk::load_fragment(a[to][i], x_tile + (warp_row + i * 16) * kRow, kRow);
#pragma unroll
        for (int j = 0; j < G; ++j) llmk::load_fragment(b[to][j], w_tile + (warp_feature + j * 16) * kRow, kRow);
    };
    llmk::Accumulator accumulators[F][G];
    llmk::zero_fragments(accumulators);
    for (int round = 0; round < kStages - 1; ++round) {
        copy_x(round);
        copy_weight(round);
    }
    if (rounds > 0) {
        wait_for_stage();
        load_fragments(0, 0, 0);
    }

    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            const int now = k / 16 % 2;
            if (k + 16 < kDepth) {
                load_fragments(1 - now, round, k + 16);
            } else if (round + 1 < rounds) {
                wait_for_stage();
                load_fragments(1 - now, round + 1, 0);
            }
            if (k == 0) copy_x(round + kStages - 1);  // into the buffer of the previous stage, which is free
            if (k == kSecondPart) copy_weight(round + kStages - 1);
#pragma unroll
            for (int i = 0; i < F; ++i) {
#pragma unroll
                for (int j = 0; j < G; ++j) {
                    wmma::mma_sync(accumulators[i][j], a[now][i], b[now][j], accumulators[i][j]);
                }
            }
        }
    }

    // The mapping of fragment elements to lanes is not specified, so the sums go through shared memory. Each warp has
    // its own staging buffer of 16 rows, so no warp waits for another. A lane writes 16 bytes of a row.
    __pipeline_wait_prior(0);
    __syncthreads();  // all threads have used the last stage
    sums += warp * S::kWarpSums;
    constexpr int kLanes = S::kWarpAcross / kVector;  // lanes per row
    const int lane = threadIdx.x % 32, column = lane % kLanes * kVector, feature = feature0 + warp_feature + column;
    float lane_bias[kVector];  // a lane writes the same columns of every row
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
        lane_bias[j] = feature + j < out_features ? static_cast<float>(bias[feature + j]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < F; ++i) {
#pragma unroll
        for (int j = 0; j < G; ++j) {
            wmma::store_matrix_sync(sums + j * 16, accumulators[i][j], kSumRow, wmma::mem_row_major);
        }
        __syncwarp();  // the 16 rows are complete
#pragma unroll
        for (int first = 0; first < 16; first += 32 / kLanes) {
            const int sum_row = first + lane / kLanes, row = row0 + warp_row + i * 16 + sum_row;
            if (row >= rows || feature >= out_features) continue;
            const float4* halves = reinterpret_cast<const float4*>(sums + sum_row * kSumRow + column);
            const float4 low = halves[0], high = halves[1];
            const float from[kVector] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            float values[kVector];
#pragma unroll
            for (int j = 0; j < kVector; ++j) values[j] = from[j] + lane_bias[j];
            T* to = out + static_cast<long long>(row) * out_features + feature;
            llmk::store_rounded(to, values, out_vectors, feature, out_features);
        }
        __syncwarp();  // all lanes have read the 16 rows
    }
}

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const bool vectors = llmk::rows_are_aligned(in_features, x, weight);
    const bool out_vectors = llmk::rows_are_aligned(out_features, out);
    // Launch the kernel if there are enough tiles to give most SMs of a large GPU a block.
    auto launch = [&](auto tile, auto kernel, long long enough) {
        using S = decltype(tile);
        const long long tiles = (rows + S::kDown - 1LL) / S::kDown * ((out_features + S::kAcross - 1LL) / S::kAcross);
        if (tiles < enough) return false;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes);
        kernel<<<static_cast<unsigned>(tiles), kThreads, S::kBytes, stream>>>(x, weight, bias, out, rows, in_features,
                                                                              out_features, out_vectors);
        return true;
    };
    launch(Tile<4, 4>(), vectors ? linear_kernel<T, 4, 4, true> : linear_kernel<T, 4, 4, false>, kEnough) ||
        launch(Tile<2, 4>(), vectors ? linear_kernel<T, 2, 4, true> : linear_kernel<T, 2, 4, false>, kEnough) ||
        launch(Tile<1, 2>(), vectors ? linear_kernel<T, 1, 2, true> : linear_kernel<T, 1, 2, false>, 0);
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_wmma_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_wmma(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_wmma_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                 __nv_bfloat16* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    linear_wmma(x, weight, bias, out, rows, in_features, out_features, stream);
}
