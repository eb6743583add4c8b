// RMSNorm and the projections to queries, keys and values in one kernel, for 1 to 16 rows, f16 or bf16 in, f32 sums:
// q = normed q_weight^T + q_bias with normed = x / sqrt(mean(x^2) + eps) * norm_weight; k and v likewise.
//
// This is day 4's matmul for a few rows. It processes the tiles of q, then those of k, then those of v. A team of warps
// computes strips of 1 or 2 tiles. It reads all of x for each strip, and adds up the squares in its first one. The
// factor of a row is applied to the finished sums.
// norm_weight, one number per column, is multiplied into the weights when they are loaded.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/few_rows.cuh"
#include "llmk/reduce.cuh"
#include "llmk/vector.cuh"

using F = llmk::FewRows;

__device__ __half2 as_pair(unsigned bits, __half) { return reinterpret_cast<const __half2&>(bits); }
__device__ __nv_bfloat162 as_pair(unsigned bits, __nv_bfloat16) {
    return reinterpret_cast<const __nv_bfloat162&>(bits);
}

template <typename T>
__device__ unsigned multiply_pairs(unsigned a, unsigned b) {
    const auto pair = __hmul2(as_pair(a, T()), as_pair(b, T()));
    return reinterpret_cast<const unsigned&>(pair);
}

// Return the sum of the squares of eight neighboring elements.
template <typename T>
__device__ float squares_of(const uint4& bits) {
    const T* elements = reinterpret_cast<const T*>(&bits);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const float value = static_cast<float>(elements[j]);
        sum += value * value;
    }
    return sum;
}

// weight: [features, in_features]   bias: [features]   out: [rows, features]
template <typename T>
struct Projection {
    const T* weight;
    const T* bias;
    T* out;
    int features;

    int tiles() const { return (features + F::kTile - 1) / F::kTile; }
};

template <typename T>
struct Projections {
    Projection<T> q, k, v;
    const T* norm_weight;
    int in_features, q_tiles, kv_tiles, parts, first_row;
    float eps;
    bool vectors;
    float (*squares)[F::kRows];  // [kWarps][kRows], shared memory: sums over each warp's part of in_features
    uint4 factors[F::kSteps];    // norm_weight at this lane's columns, for each step of a chunk
    float own = 0, own8 = 0;     // sums of squares of this lane's columns, in rows i and i + 8 of x
    bool first = true;

    // Return the projection that a tile belongs to, and set `tile` to its index in that projection.
    __device__ Projection<T> of(int& tile) const {
        if (tile < q_tiles) return q;
        tile -= q_tiles;
        if (tile < kv_tiles) return k;
        tile -= kv_tiles;
        return v;
    }
    __device__ const T* weight_row(int tile, int i) const {
        const Projection<T> projection = of(tile);
        const int feature = tile * F::kTile + i;
        if (feature >= projection.features) return nullptr;
        return projection.weight + static_cast<long long>(feature) * in_features;
    }
    __device__ void expect(int step, int column, const uint4& x, const uint4& x8) {
        factors[step] = llmk::eight_columns(norm_weight, true, column, in_features, vectors);
        if (first) {
            own += squares_of<T>(x);
            own8 += squares_of<T>(x8);
        }
    }
    __device__ uint4 use(int step, const uint4& weight) const {
        const uint4& own_factors = factors[step];
        return make_uint4(multiply_pairs<T>(weight.x, own_factors.x), multiply_pairs<T>(weight.y, own_factors.y),
                          multiply_pairs<T>(weight.z, own_factors.z), multiply_pairs<T>(weight.w, own_factors.w));
    }
    __device__ void end_of_strip() {
        if (!first) return;
        first = false;
        own = llmk::warp_sum<4>(own);  // the four lanes that share a row
        own8 = llmk::warp_sum<4>(own8);
        const int warp = threadIdx.x / 32, i = threadIdx.x % 32 / 4;
        if (threadIdx.x % 4 == 0) {
            squares[warp][i] = own;
            squares[warp][i + 8] = own8;
        }
    }
    __device__ void store(int tile, int i, int row, float sum) const {
        const Projection<T> projection = of(tile);
        const int feature = tile * F::kTile + i;
        if (feature >= projection.features) return;
        float total = 0;
        for (int p = 0; p < parts; ++p) total += squares[p][row];  // all teams have the same sums
        const float factor = rsqrtf(total / max(in_features, 1) + eps);
        const float value = sum * factor + static_cast<float>(projection.bias[feature]);
        projection.out[static_cast<long long>(first_row + row) * projection.features + feature] = static_cast<T>(value);
    }
};

// x: [rows, in_features]   norm_weight: [in_features]
template <int kWide, typename T>
__global__ void __launch_bounds__(F::kThreads, 2)
    rms_norm_qkv_kernel(const T* __restrict__ x, Projections<T> projections, int rows, int strips) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ float squares[F::kWarps][F::kRows];
    projections.squares = squares;
    projections.first_row = blockIdx.y * F::kRows;  // 0 for up to 16 rows
    llmk::skinny_gemm<kWide>(shared, x + static_cast<long long>(projections.first_row) * projections.in_features,
                             min(rows - projections.first_row, F::kRows), projections.in_features, strips,
                             projections.parts, projections.vectors, projections);
}

template <typename T>
void rms_norm_qkv(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                  int in_features, float eps, cudaStream_t stream) {
    const int tiles = q.tiles() + k.tiles() + v.tiles();
    if (rows == 0 || tiles == 0) return;
    const F share(tiles, in_features, rows);
    Projections<T> projections;
    projections.q = q;
    projections.k = k;
    projections.v = v;
    projections.norm_weight = norm_weight;
    projections.in_features = in_features;
    projections.q_tiles = q.tiles();
    projections.kv_tiles = k.tiles();
    projections.parts = share.parts;
    projections.eps = eps;
    projections.vectors = llmk::rows_are_aligned(in_features, x, norm_weight, q.weight, k.weight, v.weight);
    const dim3 grid(share.blocks, (rows + F::kRows - 1) / F::kRows);
    const auto kernel = share.wide ? rms_norm_qkv_kernel<2, T> : rms_norm_qkv_kernel<1, T>;
    const int bytes = share.wide ? F::kBytes<2> : F::kBytes<1>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::kThreads, bytes, stream>>>(x, projections, rows, share.strips);
}

// x: [rows, in_features]   norm_weight: [in_features]   q_weight: [q_features, in_features]   q_bias: [q_features]
// q: [rows, q_features]   k_weight, v_weight: [kv_features, in_features]   k_bias, v_bias: [kv_features]
// k, v: [rows, kv_features]
extern "C" void rms_norm_qkv_f16(const __half* x, const __half* norm_weight, const __half* q_weight,
                                 const __half* k_weight, const __half* v_weight, const __half* q_bias,
                                 const __half* k_bias, const __half* v_bias, __half* q, __half* k, __half* v, int rows,
                                 int in_features, int q_features, int kv_features, float eps, cudaStream_t stream) {
    rms_norm_qkv<__half>(x, norm_weight, {q_weight, q_bias, q, q_features}, {k_weight, k_bias, k, kv_features},
                         {v_weight, v_bias, v, kv_features}, rows, in_features, eps, stream);
}

extern "C" void rms_norm_qkv_bf16(const __nv_bfloat16* x, const __nv_bfloat16* norm_weight,
                                  const __nv_bfloat16* q_weight, const __nv_bfloat16* k_weight,
                                  const __nv_bfloat16* v_weight, const __nv_bfloat16* q_bias,
                                  const __nv_bfloat16* k_bias, const __nv_bfloat16* v_bias, __nv_bfloat16* q,
                                  __nv_bfloat16* k, __nv_bfloat16* v, int rows, int in_features, int q_features,
                                  int kv_features, float eps, cudaStream_t stream) {
    rms_norm_qkv<__nv_bfloat16>(x, norm_weight, {q_weight, q_bias, q, q_features}, {k_weight, k_bias, k, kv_features},
                                {v_weight, v_bias, v, kv_features}, rows, in_features, eps, stream);
}
