// Linear layer on tensor cores through WMMA: f16 or bf16 in, f32 sums, out = x weight^T + bias.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;  // a block makes kTile x kTile outputs

constexpr int kDepth = 32;                // columns of x and weight in one stage
constexpr int kStages = 4;                // stages on their way or in use
constexpr int kThreads = 128;             // four warps, each of which makes 64 x 64 outputs
constexpr int kRow = kDepth + 8;          // a row in shared memory is 80 bytes: eight rows start in different banks
constexpr int kStage = 2 * kTile * kRow;  // elements of one stage: a tile of x, then a tile of weight
constexpr size_t kSharedBytes = sizeof(short) * kStages * kStage;
static_assert(kSharedBytes >= sizeof(float) * kTile * kTile, "the sums pass through the same memory at the end");

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// Starts to copy kTile rows of kDepth columns, starting at (row0, k0), into shared memory; zeros where there are none.
// matrix: [rows, cols]   tile: [kTile, kRow]   vectors: every row starts at a multiple of 16 bytes
template <typename T>
__device__ void copy_tile(T* tile, const T* matrix, int row0, int rows, int k0, int cols, bool vectors) {
    constexpr int per_vector = 16 / sizeof(T), per_row = kDepth / per_vector;
#pragma unroll
    for (int i = threadIdx.x; i < kTile * per_row; i += kThreads) {
        const int row = row0 + i / per_row, col = k0 + i % per_row * per_vector;
        T* to = tile + i / per_row * kRow + i % per_row * per_vector;
        const T* from = matrix + static_cast<long long>(row) * cols + col;
        if (vectors) {
            const bool there = row < rows && col < cols;
            __pipeline_memcpy_async(to, there ? from : matrix, 16, there ? 0 : 16);
        } else {
            for (int j = 0; j < per_vector; ++j) to[j] = row < rows && col + j < cols ? from[j] : T(0.0f);
        }
    }
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
template <typename T>
__global__ void __launch_bounds__(kThreads, 2)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ out, int rows, int in_features, int out_features, bool vectors) {
    extern __shared__ __align__(128) unsigned char shared[];
    T* stages = reinterpret_cast<T*>(shared);        // [kStages][2][kTile][kRow]
    float* sums = reinterpret_cast<float*>(shared);  // [kTile][kTile], after the last stage
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 64, warp_feature = warp % 2 * 64;
    const int rounds = (in_features + kDepth - 1) / kDepth;

    auto copy_stage = [&](int round) {
        if (round < rounds) {
            T* stage = stages + round % kStages * kStage;
            copy_tile(stage, x, row0, rows, round * kDepth, in_features, vectors);
            copy_tile(stage + kTile * kRow, weight, feature0, out_features, round * kDepth, in_features, vectors);
        }
        __pipeline_commit();  // an empty group keeps the count of groups right at the end
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
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
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[4];
            // weight is [feature, k]: read as the k x feature matrix of the product, that is column-major.
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wmma::load_matrix_sync(a[i], x_tile + (warp_row + i * 16) * kRow + k, kRow);
                wmma::load_matrix_sync(b[i], w_tile + (warp_feature + i * 16) * kRow + k, kRow);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
            }
        }
    }

    // The layout of a fragment over the lanes is not specified, so the sums go through shared memory to reach their
    // places.
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            wmma::store_matrix_sync(sums + (warp_row + i * 16) * kTile + warp_feature + j * 16, sum[i][j], kTile,
                                    wmma::mem_row_major);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
        const int row = row0 + i / kTile, feature = feature0 + i % kTile;
        if (row < rows && feature < out_features) {
            put(out + static_cast<long long>(row) * out_features + feature,
                sums[i] + static_cast<float>(bias[feature]));
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
    cudaFuncSetAttribute(linear_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    linear_kernel<T><<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(
        x, weight, bias, out, rows, in_features, out_features, bits % 16 == 0);
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
