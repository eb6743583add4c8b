// Linear layer on tensor cores through WMMA: f16 or bf16 in, f32 accumulators, out = x weight^T + bias.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "llmk/async_copy.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;  // a block makes kTile x kTile outputs

constexpr int kDepth = 64;     // columns of x and weight in one stage
constexpr int kStages = 3;     // stages on their way or in use
constexpr int kWarpTile = 64;  // a warp makes 64 x 64 of the outputs: each fragment is used four times
constexpr int kWarpsAcross = kTile / kWarpTile;
constexpr int kWarps = kWarpsAcross * kWarpsAcross;
constexpr int kThreads = 32 * kWarps;
constexpr int kVector = 8;  // elements of 16 bytes
template <typename T>
using Copier = llmk::ColumnCopier<T, kTile, kDepth, kThreads>;
constexpr int kRow =
    Copier<__half>::kPitch;               // a row in shared memory is 144 bytes: eight rows start in different banks
constexpr int kStage = 2 * kTile * kRow;  // elements of one stage: a tile of x, then a tile of weight
constexpr int kSumRow = kWarpTile + 4;    // floats of a row of sums
constexpr int kWarpSums = 16 * kSumRow;   // floats of the piece through which a warp's sums pass, 16 rows at a time
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kWarps * kWarpSums, "the sums pass through the same memory at the end");

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
// VECTORS: every row of x and weight starts at a multiple of 16 bytes; out_vectors: so does every row of out
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ out, int rows, int in_features, int out_features, bool out_vectors) {
    extern __shared__ __align__(128) unsigned char shared[];
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][2][kTile][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kWarps][16][kSumRow], after the last stage
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * kWarpTile, warp_feature = warp % kWarpsAcross * kWarpTile;
    const int rounds = (in_features + kDepth - 1) / kDepth;

    Copier<T> x_copier(x, row0, rows, in_features), w_copier(weight, feature0, out_features, in_features);
    auto copy_stage = [&](int round) {
        if (round < rounds) {
            T* stage = stages + round % kStages * kStage;
            x_copier.template copy<VECTORS>(stage);
            w_copier.template copy<VECTORS>(stage + kTile * kRow);
        }
        __pipeline_commit();  // an empty group keeps the count of groups right at the end
    };

    constexpr int kFragments = kWarpTile / 16;
    llmk::Accumulator accumulators[kFragments][kFragments];
    llmk::fill_with_zeros(accumulators);
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);

    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this round's stage has arrived, for this thread's copies ...
        __syncthreads();                     // ... and for all; and the stage that is overwritten next has been used
        copy_stage(round + kStages - 1);
        const T* x_tile = stages + round % kStages * kStage;
        const T* w_tile = x_tile + kTile * kRow;
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            llmk::OperandA<T> a[kFragments];
            llmk::OperandB<T> b[kFragments];
#pragma unroll
            for (int i = 0; i < kFragments; ++i)
                llmk::load_operand(a[i], x_tile + (warp_row + i * 16) * kRow + k, kRow);
#pragma unroll
            for (int j = 0; j < kFragments; ++j)
                llmk::load_operand(b[j], w_tile + (warp_feature + j * 16) * kRow + k, kRow);
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
#pragma unroll
                for (int j = 0; j < kFragments; ++j) wmma::mma_sync(accumulators[i][j], a[i], b[j], accumulators[i][j]);
            }
        }
    }

    // Which lane holds which element of a fragment is not specified: the sums go through shared memory to their places. Each
    // warp does so in a piece of its own, 16 rows at a time, and waits for no other; a lane writes 16 bytes of a row.
    __pipeline_wait_prior(0);
    __syncthreads();  // all have used the last stage
    sums += warp * kWarpSums;
    constexpr int kLanes = kWarpTile / kVector;  // that share a row
    const int lane = threadIdx.x % 32, column = lane % kLanes * kVector, feature = feature0 + warp_feature + column;
    float lane_bias[kVector];  // a lane writes the same columns of every row
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
        lane_bias[j] = feature + j < out_features ? static_cast<float>(bias[feature + j]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
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
        __syncwarp();  // all lanes have read them
    }
}

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const auto kernel =
        llmk::rows_are_aligned(in_features, x, weight) ? linear_kernel<T, true> : linear_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const bool out_vectors = llmk::rows_are_aligned(out_features, out);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(x, weight, bias, out, rows, in_features,
                                                                             out_features, out_vectors);
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
