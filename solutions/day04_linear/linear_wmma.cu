// Linear layer on tensor cores through WMMA: f16 or bf16 in, f32 sums, out = x weight^T + bias.
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
constexpr int kWarpTile = 64;  // a warp makes 64 x 64 of the outputs: each fragment is used four times
constexpr int kWarpsAcross = kTile / kWarpTile;
constexpr int kThreads = 32 * kWarpsAcross * kWarpsAcross;
constexpr int kRow = kDepth + 8;          // a row in shared memory is 144 bytes: eight rows start in different banks
constexpr int kStage = 2 * kTile * kRow;  // elements of one stage: a tile of x, then a tile of weight
constexpr int kSumRow = kTile + 4;        // floats of a row of sums
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kTile * kSumRow, "the sums pass through the same memory at the end");

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// What one thread copies of a tile of kTile rows: 16 bytes of every kRowsAtOnce-th row. The addresses are made once, before
// the loop, and per stage they only move on: made anew for each copy they took more instructions than the product.
template <typename T>
struct Copier {
    static constexpr int kVector = 16 / sizeof(T);
    static constexpr int kLanes = kDepth / kVector;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
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
        for (int i = 0; i < kTile / kRowsAtOnce; ++i) {
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
};

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
// VECTORS: every row of x and weight starts at a multiple of 16 bytes
template <typename T, bool VECTORS>
__global__ void __launch_bounds__(kThreads, 2)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ out, int rows, int in_features, int out_features) {
    extern __shared__ __align__(128) unsigned char shared[];
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][2][kTile][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kTile][kSumRow], after the last stage
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
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[kFragments][kFragments];
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    for (int round = 0; round < kStages - 1; ++round) copy_stage(round);

    for (int round = 0; round < rounds; ++round) {
        __pipeline_wait_prior(kStages - 2);  // this round's stage has arrived, for this thread's copies ...
        __syncthreads();                     // ... and for all; and the stage that is overwritten next has been used
        copy_stage(round + kStages - 1);
        const T* x_tile = stages + round % kStages * kStage;
        const T* w_tile = x_tile + kTile * kRow;
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[kFragments];
            // weight is [feature, k]: read as the k x feature matrix of the product, that is column-major.
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

    // Which lane holds which element of a fragment is not specified: the sums go through shared memory to their places.
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
        const int row = row0 + i / kTile, feature = feature0 + i % kTile;
        if (row < rows && feature < out_features) {
            const float sum = sums[i / kTile * kSumRow + i % kTile] + static_cast<float>(bias[feature]);
            put(out + static_cast<long long>(row) * out_features + feature, sum);
        }
    }
}

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight) | in_features * sizeof(T);
    const auto kernel = bits % 16 == 0 ? linear_kernel<T, true> : linear_kernel<T, false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    kernel<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(x, weight, bias, out, rows, in_features,
                                                                             out_features);
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
