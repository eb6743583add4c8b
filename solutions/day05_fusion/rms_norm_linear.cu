// RMSNorm and the linear layer behind it in one kernel, f16 or bf16 in, f32 sums:
// out = (x / sqrt(mean(x^2) + eps) * norm_weight) weight^T.
//
// The norm's factor is one number per row, and a product is linear in its rows: sum_c (factor x_c) w_c = factor sum_c x_c w_c.
// So the product is made of x as it is. Each piece of a row passes through shared memory for the product anyway; on its way
// the squares are summed, and the factor is applied to the finished sums. norm_weight, one number per column, is multiplied
// into the tiles of weight: into those of x it could overflow, since x has not been made small yet.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;  // a block makes kTile x kTile outputs

constexpr int kDepth = 64;     // columns of x and weight in one stage
constexpr int kStages = 3;     // stages on their way or in use
constexpr int kWarpTile = 64;  // a warp makes 64 x 64 of the outputs
constexpr int kWarpsAcross = kTile / kWarpTile;
constexpr int kThreads = 32 * kWarpsAcross * kWarpsAcross;
constexpr int kVector = 8;                      // elements of 16 bytes
constexpr int kLanes = kDepth / kVector;        // threads that share a row of a stage
constexpr int kRowsAtOnce = kThreads / kLanes;  // rows that the block copies at once
constexpr int kOwnRows = kTile / kRowsAtOnce;   // rows of which a thread copies a piece
constexpr int kRow = kDepth + kVector;          // a row in shared memory is 144 bytes: no bank conflicts
constexpr int kStage = 2 * kTile * kRow;        // elements of one stage: a tile of x, then a tile of weight
constexpr int kSumRow = kTile + 4;              // floats of a row of sums
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kTile * kSumRow, "the sums pass through the same memory at the end");

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// Eight neighbours, as pairs.
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

// Eight neighbours of a row from column `column` on, zeros beyond its end.
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

// What one thread copies of a tile of kTile rows: 16 bytes of every kRowsAtOnce-th row. The addresses are made once.
template <typename T>
struct Copier {
    const T* from;      // of the first row
    long long step;     // elements from one of this thread's rows to the next
    int rows, columns;  // that are left, from the first row and this thread's column on
    int to;             // in the tile

    __device__ Copier(const T* matrix, int row0, int all_rows, int cols) {
        const int row = threadIdx.x / kLanes, col = threadIdx.x % kLanes * kVector;
        from = matrix + static_cast<long long>(row0 + row) * cols + col;
        step = static_cast<long long>(kRowsAtOnce) * cols;
        rows = all_rows - row0 - row;
        columns = cols - col;
        to = row * kRow + col;
    }

    // Starts to copy the next kDepth columns; zeros where there are none.
    template <bool VECTORS>
    __device__ void copy(T* tile) {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            const T* source = from + i * step;
            T* target = tile + to + i * kRowsAtOnce * kRow;
            const bool row_there = i * kRowsAtOnce < rows;
            if constexpr (VECTORS) {
                __pipeline_memcpy_async(target, source, 16, row_there && columns > 0 ? 0 : 16);
            } else {
                for (int j = 0; j < kVector; ++j) target[j] = row_there && j < columns ? source[j] : T(0.0f);
            }
        }
        from += kDepth;
        columns -= kDepth;
    }

    // Adds the squares of the pieces that this thread copied. A thread sees its own copies without a barrier.
    __device__ void add_squares(const T* tile, float (&squares)[kOwnRows]) const {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            const uint4 bits = *reinterpret_cast<const uint4*>(tile + to + i * kRowsAtOnce * kRow);
            const Pairs<T>& piece = reinterpret_cast<const Pairs<T>&>(bits);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 pair = to_floats(piece.at[j]);
                squares[i] += pair.x * pair.x;
                squares[i] += pair.y * pair.y;
            }
        }
    }

    // Multiplies the pieces that this thread copied by eight factors, one for each column.
    __device__ void scale_columns(T* tile, const uint4& factors) const {
        const Pairs<T>& by = reinterpret_cast<const Pairs<T>&>(factors);
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            uint4* place = reinterpret_cast<uint4*>(tile + to + i * kRowsAtOnce * kRow);
            uint4 bits = *place;
            Pairs<T>& piece = reinterpret_cast<Pairs<T>&>(bits);
#pragma unroll
            for (int j = 0; j < 4; ++j) piece.at[j] = __hmul2(piece.at[j], by.at[j]);
            *place = bits;
        }
    }
};

// x: [rows, in_features]   norm_weight: [in_features]   weight: [out_features, in_features]   out: [rows, out_features]
// VECTORS: every row of x, norm_weight and weight starts at a multiple of 16 bytes
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    rms_norm_linear_kernel(const T* __restrict__ x, const T* __restrict__ norm_weight, const T* __restrict__ weight,
                           T* __restrict__ out, int rows, int in_features, int out_features, float eps) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ float factors[kTile];                 // of the rows
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][2][kTile][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kTile][kSumRow], after the last stage
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
        __pipeline_commit();  // an empty group keeps the count of groups right at the end
    };

    constexpr int kFragments = kWarpTile / 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[kFragments][kFragments];
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    float squares[kOwnRows] = {};
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);
    uint4 column_factors = load_eight<VECTORS>(norm_weight, own_column, in_features);

    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this round's stage has arrived, for this thread's copies
        T* x_tile = stages + round % kStages * kStage;
        T* w_tile = x_tile + kTile * kRow;
        x_copier.add_squares(x_tile, squares);
        w_copier.scale_columns(w_tile, column_factors);
        __syncthreads();  // the stage is complete for all; and the stage that is overwritten next has been used
        copy_stage(round + kStages - 1);
        column_factors = load_eight<VECTORS>(norm_weight, (round + 1) * kDepth + own_column, in_features);
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[kFragments];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b[kFragments];
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
                wmma::load_matrix_sync(a[i], x_tile + (warp_row + i * 16) * kRow + k, kRow);
                wmma::load_matrix_sync(b[i], w_tile + (warp_feature + i * 16) * kRow + k, kRow);
            }
#pragma unroll
            for (int i = 0; i < kFragments; ++i) {
#pragma unroll
                for (int j = 0; j < kFragments; ++j) wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
            }
        }
    }

    // The kLanes threads that shared a row are neighbours in a warp.
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
#pragma unroll
        for (int distance = kLanes / 2; distance > 0; distance /= 2) {
            squares[i] += __shfl_xor_sync(0xffffffffu, squares[i], distance);
        }
        if (threadIdx.x % kLanes == 0) {
            const float mean = squares[i] / max(in_features, 1);
            factors[threadIdx.x / kLanes + i * kRowsAtOnce] = rsqrtf(mean + eps);
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
            wmma::store_matrix_sync(sums + (warp_row + i * 16) * kSumRow + warp_feature + j * 16, sum[i][j], kSumRow,
                                    wmma::mem_row_major);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
        const int row = i / kTile, feature = i % kTile;
        if (row0 + row < rows && feature0 + feature < out_features) {
            const float value = sums[row * kSumRow + feature] * factors[row];
            put(out + static_cast<long long>(row0 + row) * out_features + feature0 + feature, value);
        }
    }
}

template <typename T>
void rms_norm_linear(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int in_features,
                     int out_features, float eps, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const uintptr_t bits = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(norm_weight) |
                           reinterpret_cast<uintptr_t>(weight) | in_features * sizeof(T);
    const auto kernel = bits % 16 == 0 ? rms_norm_linear_kernel<T, true> : rms_norm_linear_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(x, norm_weight, weight, out, rows,
                                                                             in_features, out_features, eps);
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
