// Gate, up and SwiGLU in one kernel, f16 or bf16 in, f32 accumulators: out = silu(x gate_weight^T) * (x up_weight^T).
//
// A block computes 128 x 64 outputs. Its tile of weights has 64 rows of gate_weight above 64 rows of up_weight, so one
// tile of x in shared memory serves both matmuls. Each warp computes the same columns of both, so gate and up of one
// output are in the registers of one lane, as unrounded floats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "llmk/async_copy.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int kTileRows = 128;  // a block computes kTileRows x kTileFeatures outputs
constexpr int kTileFeatures = 64;

constexpr int kDepth = 64;     // columns of x and of the weights in one stage
constexpr int kStages = 3;     // stages in flight or in use
constexpr int kWarpRows = 64;  // a warp computes 64 x 32 gates and the 64 x 32 matching ups
constexpr int kWarpFeatures = 32;
constexpr int kWarpsAcross = kTileFeatures / kWarpFeatures;
constexpr int kThreads = 32 * kWarpsAcross * (kTileRows / kWarpRows);
constexpr int kVector = 8;  // elements in 16 bytes
template <typename T, int ROWS>
using Copier = llmk::ColumnCopier<T, ROWS, kDepth, kThreads>;
constexpr int kRow = Copier<__half, kTileRows>::kPitch;  // a row in shared memory is 144 bytes: no bank conflicts
constexpr int kStage = (kTileRows + 2 * kTileFeatures) * kRow;  // elements of one stage: x, gate_weight, up_weight
constexpr int kOutRow = kTileFeatures + 4;                      // floats of a row of outputs
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kTileRows * kOutRow,
              "the outputs pass through the same memory at the end");

// If gate is below -88, exp(-gate) overflows to infinity, and the result is 0, as it should be.
__device__ float gated(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

// x: [rows, in_features]   gate_weight, up_weight: [hidden, in_features]   out: [rows, hidden]
// VECTORS: every row of every tensor starts at a multiple of 16 bytes
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    linear_swiglu_kernel(const T* __restrict__ x, const T* __restrict__ gate_weight, const T* __restrict__ up_weight,
                         T* __restrict__ out, int rows, int in_features, int hidden) {
    extern __shared__ __align__(128) unsigned char shared[];
    T* stages = reinterpret_cast<T*>(shared);           // [kStages][x, gate, up][...][kRow]
    float* outputs = reinterpret_cast<float*>(shared);  // [kTileRows][kOutRow], after the last stage
    const int tiles_across = (hidden + kTileFeatures - 1) / kTileFeatures;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTileRows;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTileFeatures;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * kWarpRows, warp_feature = warp % kWarpsAcross * kWarpFeatures;
    const int rounds = (in_features + kDepth - 1) / kDepth;

    Copier<T, kTileRows> x_copier(x, row0, rows, in_features);
    Copier<T, kTileFeatures> gate_copier(gate_weight, feature0, hidden, in_features);
    Copier<T, kTileFeatures> up_copier(up_weight, feature0, hidden, in_features);
    auto copy_stage = [&](int round) {
        if (round < rounds) {
            T* stage = stages + round % kStages * kStage;
            x_copier.template copy<VECTORS>(stage);
            gate_copier.template copy<VECTORS>(stage + kTileRows * kRow);
            up_copier.template copy<VECTORS>(stage + (kTileRows + kTileFeatures) * kRow);
        }
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };

    constexpr int kDown = kWarpRows / 16, kAcross = kWarpFeatures / 16;
    llmk::Accumulator gate[kDown][kAcross], up[kDown][kAcross];
    llmk::zero_fragments(gate);
    llmk::zero_fragments(up);
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);

    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of this round's stage have arrived ...
        __syncthreads();  // ... and all threads' copies; all warps have used the stage that is overwritten next
        copy_stage(round + kStages - 1);
        const T* x_tile = stages + round % kStages * kStage;
        const T* gate_tile = x_tile + kTileRows * kRow;
        const T* up_tile = gate_tile + kTileFeatures * kRow;
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            llmk::OperandA<T> a[kDown];
            llmk::OperandB<T> g[kAcross], u[kAcross];
#pragma unroll
            for (int i = 0; i < kDown; ++i) llmk::load_fragment(a[i], x_tile + (warp_row + i * 16) * kRow + k, kRow);
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                llmk::load_fragment(g[j], gate_tile + (warp_feature + j * 16) * kRow + k, kRow);
                llmk::load_fragment(u[j], up_tile + (warp_feature + j * 16) * kRow + k, kRow);
            }
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
#pragma unroll
                for (int j = 0; j < kAcross; ++j) {
                    wmma::mma_sync(gate[i][j], a[i], g[j], gate[i][j]);
                    wmma::mma_sync(up[i][j], a[i], u[j], up[i][j]);
                }
            }
        }
    }

    // Two fragments of one type have the same layout, so gate and up can be combined in registers. The outputs pass
    // through shared memory only to be written in order.
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
#pragma unroll
            for (int e = 0; e < gate[i][j].num_elements; ++e) gate[i][j].x[e] = gated(gate[i][j].x[e], up[i][j].x[e]);
            wmma::store_matrix_sync(outputs + (warp_row + i * 16) * kOutRow + warp_feature + j * 16, gate[i][j],
                                    kOutRow, wmma::mem_row_major);
        }
    }
    __syncthreads();
    constexpr int kPieces = kTileFeatures / kVector;  // 16-byte pieces per row of outputs
    for (int i = threadIdx.x; i < kTileRows * kPieces; i += kThreads) {
        const int row = row0 + i / kPieces, feature = feature0 + i % kPieces * kVector;
        const float4* halves = reinterpret_cast<const float4*>(outputs + i / kPieces * kOutRow + i % kPieces * kVector);
        const float4 low = halves[0], high = halves[1];
        const float from[kVector] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        if (row >= rows || feature >= hidden) continue;
        T* to = out + static_cast<long long>(row) * hidden + feature;
        llmk::store_rounded(to, from, VECTORS, feature, hidden);
    }
}

template <typename T>
void linear_swiglu(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int in_features, int hidden,
                   cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const long long tiles = (rows + kTileRows - 1LL) / kTileRows * ((hidden + kTileFeatures - 1LL) / kTileFeatures);
    const bool vectors =
        llmk::rows_are_aligned(in_features, x, gate_weight, up_weight) && llmk::rows_are_aligned(hidden, out);
    const auto kernel = vectors ? linear_swiglu_kernel<T, true> : linear_swiglu_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(x, gate_weight, up_weight, out, rows,
                                                                             in_features, hidden);
}

// x: [rows, in_features]   gate_weight, up_weight: [hidden, in_features]   out: [rows, hidden]
extern "C" void linear_swiglu_f16(const __half* x, const __half* gate_weight, const __half* up_weight, __half* out,
                                  int rows, int in_features, int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}

extern "C" void linear_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* gate_weight,
                                   const __nv_bfloat16* up_weight, __nv_bfloat16* out, int rows, int in_features,
                                   int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}
