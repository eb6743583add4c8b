// RMSNorm and the linear layer after it in one kernel, f16 or bf16 in, f32 accumulators:
// out = (x / sqrt(mean(x^2) + eps) * norm_weight) weight^T.
//
// The norm's factor is one number per row, and a matmul is linear in its rows: sum_c (r x_c) w_c = r sum_c x_c w_c.
// So the kernel multiplies x without the factor r, sums the squares of each row while its pieces are in shared
// memory for the matmul, and applies the factor to the finished sums. norm_weight, one number per column, is multiplied
// into the tiles of weight: x * norm_weight could overflow, because x is not scaled yet.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "llmk/async_copy.cuh"
#include "llmk/reduce.cuh"
#include "llmk/vector.cuh"
#include "llmk/wmma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;  // a block computes kTile x kTile outputs

constexpr int kDepth = 64;     // columns of x and weight in one stage
constexpr int kStages = 3;     // stages in flight or in use
constexpr int kWarpTile = 64;  // a warp computes 64 x 64 of the outputs
constexpr int kWarpsAcross = kTile / kWarpTile;
constexpr int kWarps = kWarpsAcross * kWarpsAcross;
constexpr int kThreads = 32 * kWarps;
constexpr int kVector = 8;  // elements in 16 bytes
template <typename T>
using Columns = llmk::ColumnCopier<T, kTile, kDepth, kThreads>;
constexpr int kLanes = Columns<__half>::kLanes;      // threads that share a row of a stage
constexpr int kOwnRows = Columns<__half>::kOwnRows;  // rows of which a thread copies a piece
constexpr int kRow = Columns<__half>::kPitch;        // a row in shared memory is 144 bytes: no bank conflicts
constexpr int kStage = 2 * kTile * kRow;             // elements of one stage: a tile of x, then a tile of weight
constexpr int kSumRow = kWarpTile + 4;               // floats from row to row of sums
constexpr int kWarpSums = 16 * kSumRow;  // floats of a warp's staging buffer for its sums, 16 rows at a time
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kWarps * kWarpSums, "the sums pass through the same memory at the end");

// Eight neighboring elements, as four pairs.
template <typename T>
struct Pairs;
template <>
struct Pairs<__half> {
    __half2 at[4];
};
template <>
struct Pairs<__nv_bfloat16> {
    __nv_bfloat162 at[4];
};
__device__ float2 to_floats(__half2 x) { return __half22float2(x); }
__device__ float2 to_floats(__nv_bfloat162 x) { return __bfloat1622float2(x); }

// Return eight neighboring elements of a row, starting at `column`; zeros past its end.
template <bool VECTORS, typename T>
__device__ uint4 load_eight(const T* row, int column, int columns) {
    uint4 bits = make_uint4(0, 0, 0, 0);
    if constexpr (VECTORS) {
        if (column < columns) bits = *reinterpret_cast<const uint4*>(row + column);
    } else {
        T* elements = reinterpret_cast<T*>(&bits);
#pragma unroll
        for (int j = 0; j < kVector; ++j) elements[j] = column + j < columns ? row[column + j] : T(0.0f);
    }
    return bits;
}

// The pieces of a tile that one thread copies. The same thread also reads its pieces of x, and scales those of weight.
template <typename T>
struct Copier : Columns<T> {
    using Columns<T>::Columns;

    // Add the squares of the pieces of x that this thread copied. A thread sees its own copies without a barrier.
    __device__ void add_squares(const T* tile, float (&squares)[kOwnRows]) const {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            const uint4 bits = *reinterpret_cast<const uint4*>(tile + this->offset(i));
            const Pairs<T>& piece = reinterpret_cast<const Pairs<T>&>(bits);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 pair = to_floats(piece.at[j]);
                squares[i] += pair.x * pair.x;
                squares[i] += pair.y * pair.y;
            }
        }
    }

    // Multiply the pieces of weight that this thread copied by eight factors, one per column.
    __device__ void scale_columns(T* tile, const uint4& factors) const {
        const Pairs<T>& by = reinterpret_cast<const Pairs<T>&>(factors);
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            uint4* place = reinterpret_cast<uint4*>(tile + this->offset(i));
            uint4 bits = *place;
            Pairs<T>& piece = reinterpret_cast<Pairs<T>&>(bits);
#pragma unroll
            for (int j = 0; j < 4; ++j) piece.at[j] = __hmul2(piece.at[j], by.at[j]);
            *place = bits;
        }
    }
};

// x: [rows, in_features]   norm_weight: [in_features]   weight: [out_features, in_features]   out: [rows, out_features]
// VECTORS: every row of x, norm_weight and weight starts at a multiple of 16 bytes; out_vectors: so does every row of out
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    rms_norm_linear_kernel(const T* __restrict__ x, const T* __restrict__ norm_weight, const T* __restrict__ weight,
                           T* __restrict__ out, int rows, int in_features, int out_features, float eps,
                           bool out_vectors) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ float factors[kTile];                 // one per row of the tile
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][2][kTile][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kWarps][16][kSumRow], after the last stage
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpsAcross * kWarpTile, warp_feature = warp % kWarpsAcross * kWarpTile;
    const int rounds = (in_features + kDepth - 1) / kDepth;
    const int own_column = threadIdx.x % kLanes * kVector;

    Copier<T> x_copier(x, row0, rows, in_features), w_copier(weight, feature0, out_features, in_features);
    auto copy_stage = [&](int round) {
        if (round < rounds) {
            T* stage = stages + round % kStages * kStage;
            x_copier.template copy<VECTORS>(stage);
            w_copier.template copy<VECTORS>(stage + kTile * kRow);
        }
        __pipeline_commit();  // commits an empty group at the end, so that the count of groups stays right
    };

    constexpr int kFragments = kWarpTile / 16;
    llmk::Accumulator accumulators[kFragments][kFragments];
    llmk::zero_fragments(accumulators);
    float squares[kOwnRows] = {};
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);
    uint4 column_factors = load_eight<VECTORS>(norm_weight, own_column, in_features);

    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this thread's copies of this round's stage have arrived
        T* x_tile = stages + round % kStages * kStage;
        T* w_tile = x_tile + kTile * kRow;
        x_copier.add_squares(x_tile, squares);
        w_copier.scale_columns(w_tile, column_factors);
        __syncthreads();  // all copies have arrived, and all warps have used the stage that is overwritten next
        copy_stage(round + kStages - 1);
        column_factors = load_eight<VECTORS>(norm_weight, (round + 1) * kDepth + own_column, in_features);
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            llmk::OperandA<T> a[kFragments];
            llmk::OperandB<T> b[kFragments];
#pragma unroll
            for (int i = 0; i < kFragments; ++i)
                llmk::load_fragment(a[i], x_tile + (warp_row + i * 16) * kRow + k, kRow);
#pragma unroll
            for (int j = 0; j < kFragments; ++j)
                llmk::load_fragment(b[j], w_tile + (warp_feature + j * 16) * kRow + k, kRow);
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
#pragma unroll
                for (int j = 0; j < kFragments; ++j) wmma::mma_sync(accumulators[i][j], a[i], b[j], accumulators[i][j]);
            }
        }
    }

    // The kLanes threads that shared a row are neighbors in a warp.
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
        squares[i] = llmk::warp_sum<kLanes>(squares[i]);
        if (threadIdx.x % kLanes == 0) {
            const float mean = squares[i] / max(in_features, 1);
            factors[threadIdx.x / kLanes + i * Columns<T>::kRowsAtOnce] = rsqrtf(mean + eps);
        }
    }

    // As in linear_wmma: each warp's sums pass through a staging buffer of its own, 16 rows at a time, and a
    // lane writes 16 bytes of a row.
    __pipeline_wait_prior(0);
    __syncthreads();  // all threads have used the last stage, and the factors are stored
    sums += warp * kWarpSums;
    constexpr int kOutLanes = kWarpTile / kVector;  // lanes that share a row of outputs
    const int lane = threadIdx.x % 32, column = lane % kOutLanes * kVector, feature = feature0 + warp_feature + column;
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
            wmma::store_matrix_sync(sums + j * 16, accumulators[i][j], kSumRow, wmma::mem_row_major);
        }
        __syncwarp();  // the 16 rows are complete
#pragma unroll
        for (int first = 0; first < 16; first += 32 / kOutLanes) {
            const int sum_row = first + lane / kOutLanes, row = warp_row + i * 16 + sum_row;
            if (row0 + row >= rows || feature >= out_features) continue;
            const float4* halves = reinterpret_cast<const float4*>(sums + sum_row * kSumRow + column);
            const float4 low = halves[0], high = halves[1];
            const float from[kVector] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            float values[kVector];
#pragma unroll
            for (int j = 0; j < kVector; ++j) values[j] = from[j] * factors[row];
            T* to = out + static_cast<long long>(row0 + row) * out_features + feature;
            llmk::store_rounded(to, values, out_vectors, feature, out_features);
        }
        __syncwarp();  // all lanes have read the 16 rows
    }
}

template <typename T>
void rms_norm_linear(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int in_features,
                     int out_features, float eps, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const auto kernel = llmk::rows_are_aligned(in_features, x, norm_weight, weight) ? rms_norm_linear_kernel<T, true>
                                                                                    : rms_norm_linear_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const bool out_vectors = llmk::rows_are_aligned(out_features, out);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(
        x, norm_weight, weight, out, rows, in_features, out_features, eps, out_vectors);
}

// x: [rows, in_features]   norm_weight: [in_features]   weight: [out_features, in_features]   out: [rows, out_features]
extern "C" void rms_norm_linear_f16(const __half* x, const __half* norm_weight, const __half* weight, __half* out,
                                    int rows, int in_features, int out_features, float eps, cudaStream_t stream) {
    rms_norm_linear(x, norm_weight, weight, out, rows, in_features, out_features, eps, stream);
}

extern "C" void rms_norm_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* norm_weight,
                                     const __nv_bfloat16* weight, __nv_bfloat16* out, int rows, int in_features,
                                     int out_features, float eps, cudaStream_t stream) {
    rms_norm_linear(x, norm_weight, weight, out, rows, in_features, out_features, eps, stream);
}
