// Linear layer with GELU in its epilogue, f32, f16 or bf16 in, f32 sums: out = gelu(x weight^T + bias),
// gelu(v) = v Phi(v) = v / 2 (1 + erf(v / sqrt(2))).
//
// Bias and GELU are applied between the accumulators and the one store. Only the inner multiplication depends on the
// dtype: tensor cores for f16 and bf16, multiply-adds for f32. Tiles, stages and epilogue are the same.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "llmk/async_copy.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

constexpr int kTile = 128;  // a block computes kTile x kTile outputs

constexpr int kStages = 3;     // stages in flight or in use
constexpr int kWarpTile = 64;  // a warp computes 64 x 64 of the outputs
constexpr int kWarpsAcross = kTile / kWarpTile;
constexpr int kWarps = kWarpsAcross * kWarpsAcross;
constexpr int kThreads = 32 * kWarps;
template <typename T>
constexpr int kDepth = 128 / static_cast<int>(sizeof(T));  // columns of x and weight in one stage: 128 bytes
template <typename T>
using Copier = llmk::ColumnCopier<T, kTile, kDepth<T>, kThreads>;
constexpr int kStageBytes = 2 * kTile * (128 + 16);  // a tile of x and one of weight; rows are padded by 16 bytes
constexpr size_t kSharedBytes = kStages * kStageBytes;
constexpr int kSumRow = kWarpTile + 4;   // floats from row to row of sums
constexpr int kWarpSums = 16 * kSumRow;  // floats of a warp's staging buffer for its sums, 16 rows at a time
static_assert(kSharedBytes >= sizeof(float) * kWarps * kWarpSums, "the sums pass through the same memory at the end");

// Return v times the normal distribution's CDF at v. Some models approximate this with tanh.
__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

// The 64 x 64 sums of a warp. For f16 and bf16 they are in fragments of tensor cores. x and weight point to the warp's
// first row.
template <typename T>
struct Sums {
    static constexpr int kFragments = kWarpTile / 16;
    llmk::Accumulator at[kFragments][kFragments];

    __device__ Sums() { llmk::zero_fragments(at); }

    __device__ __forceinline__ void add(const T* x, const T* weight) {
        constexpr int kPitch = Copier<T>::kPitch;
#pragma unroll
        for (int k = 0; k < kDepth<T>; k += 16) {
            llmk::OperandA<T> a[kFragments];
            llmk::OperandB<T> b[kFragments];
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
                llmk::load_fragment(a[i], x + i * 16 * kPitch + k, kPitch);
                llmk::load_fragment(b[i], weight + i * 16 * kPitch + k, kPitch);
            }
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
#pragma unroll
                for (int j = 0; j < kFragments; ++j) nvcuda::wmma::mma_sync(at[i][j], a[i], b[j], at[i][j]);
            }
        }
    }

    // Store rows 16 i ... 16 i + 15 to shared memory.
    __device__ __forceinline__ void store(int i, float* to) const {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
            nvcuda::wmma::store_matrix_sync(to + j * 16, at[i][j], kSumRow, nvcuda::wmma::mem_row_major);
        }
    }
};

// For f32 a lane computes rows (lane / 8) + 4 i and columns lane % 8 + 8 j: 16 x 8 sums. It uses each value of x 8
// times and each value of weight 16 times. The eight rows that neighboring lanes read start in different banks.
template <>
struct Sums<float> {
    const int row = threadIdx.x % 32 / 8, column = threadIdx.x % 8;
    float at[16][8] = {};

    __device__ __forceinline__ void add(const float* x, const float* weight) {
        constexpr int kPitch = Copier<float>::kPitch;
#pragma unroll
        for (int k = 0; k < kDepth<float>; k += 4) {
            float4 b[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) b[j] = *reinterpret_cast<const float4*>(weight + (column + 8 * j) * kPitch + k);
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const float4 a = *reinterpret_cast<const float4*>(x + (row + 4 * i) * kPitch + k);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    at[i][j] += a.x * b[j].x;
                    at[i][j] += a.y * b[j].y;
                    at[i][j] += a.z * b[j].z;
                    at[i][j] += a.w * b[j].w;
                }
            }
        }
    }

    __device__ __forceinline__ void store(int i, float* to) const {
#pragma unroll
        for (int own = 0; own < 4; ++own) {
#pragma unroll
            for (int j = 0; j < 8; ++j) to[(row + 4 * own) * kSumRow + column + 8 * j] = at[4 * i + own][j];
        }
    }
};

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
// VECTORS: every row of x and weight starts at a multiple of 16 bytes; out_vectors: so does every row of out
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    linear_gelu_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                       T* __restrict__ out, int rows, int in_features, int out_features, bool out_vectors) {
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int kPitch = Copier<T>::kPitch;
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * kWarpTile, warp_feature = warp % kWarpsAcross * kWarpTile;
    const int rounds = (in_features + kDepth<T> - 1) / kDepth<T>;

    Copier<T> x_copier(x, row0, rows, in_features), weight_copier(weight, feature0, out_features, in_features);
    auto tile_of_x = [&](int round) { return reinterpret_cast<T*>(shared + round % kStages * kStageBytes); };
    auto tile_of_weight = [&](int round) { return tile_of_x(round) + kTile * kPitch; };
    auto copy_stage = [&](int round) {
        if (round < rounds) {
            x_copier.template copy<VECTORS>(tile_of_x(round));
            weight_copier.template copy<VECTORS>(tile_of_weight(round));
        }
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };

    Sums<T> sums;
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);
    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of this round's stage have arrived ...
        __syncthreads();  // ... and all threads' copies; all warps have used the stage that is overwritten next
        copy_stage(round + kStages - 1);
        sums.add(tile_of_x(round) + warp_row * kPitch, tile_of_weight(round) + warp_feature * kPitch);
    }

    // The sums pass through shared memory to get into the order of out, 16 rows at a time, in a part that only this
    // warp uses. A lane finishes eight neighbors of a row: bias, GELU, one rounding, one store.
    __pipeline_wait_prior(0);
    __syncthreads();  // all threads have used the last stage
    float* piece = reinterpret_cast<float*>(shared) + warp * kWarpSums;
    const int lane = threadIdx.x % 32, column = lane % 8 * 8, feature = feature0 + warp_feature + column;
    float lane_bias[8];  // a lane finishes the same columns of every row
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        lane_bias[j] = feature + j < out_features ? static_cast<float>(bias[feature + j]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kWarpTile / 16; ++i) {
        sums.store(i, piece);
        __syncwarp();  // the 16 rows are complete
#pragma unroll
        for (int first = 0; first < 16; first += 4) {
            const int piece_row = first + lane / 8, row = row0 + warp_row + i * 16 + piece_row;
            if (row >= rows || feature >= out_features) continue;
            T* to = out + static_cast<long long>(row) * out_features + feature;
            constexpr int kAtOnce = llmk::kVectorWidth<T>;
            float values[8 / kAtOnce][kAtOnce];
#pragma unroll
            for (int j = 0; j < 8; j += 4) {
                const float4 four = *reinterpret_cast<const float4*>(piece + piece_row * kSumRow + column + j);
                const float from[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    values[(j + e) / kAtOnce][(j + e) % kAtOnce] = gelu(from[e] + lane_bias[j + e]);
                }
            }
#pragma unroll
            for (int j = 0; j < 8; j += kAtOnce) {
                if (feature + j >= out_features) continue;
                llmk::store_rounded(to + j, values[j / kAtOnce], out_vectors, feature + j, out_features);
            }
        }
        __syncwarp();  // all lanes have read the 16 rows
    }
}

template <typename T>
void linear_gelu(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const bool vectors = llmk::rows_are_aligned(in_features, x, weight);
    const bool out_vectors = llmk::rows_are_aligned(out_features, out);
    const auto kernel = vectors ? linear_gelu_kernel<T, true> : linear_gelu_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(x, weight, bias, out, rows, in_features,
                                                                             out_features, out_vectors);
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_gelu_f32(const float* x, const float* weight, const float* bias, float* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_gelu_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_gelu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                 __nv_bfloat16* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}
