// Version 3: both matmuls on tensor cores. A block is one warp, which owns 16 queries and takes 16 keys at a time.
//
//   q, out: [query_len, kDim]     k, v: [key_len, kDim]     both lengths multiples of 16
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

namespace wmma = nvcuda::wmma;

constexpr int kDim = 64;
constexpr int kPitch = 20;    // floats from a column of S to the next
constexpr int kWeights = 24;  // elements from a row of P to the next
constexpr int kOut = kDim + 4;

using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Multiplies row r of every fragment by factors[r]. Fragments of one type have one layout. So a fragment whose columns
// are all `factors` has factors[r] in each place where the other fragments have an element of row r.
__device__ void multiply_rows(Accumulator (&o)[kDim / 16], const float* factors) {
    Accumulator factor;
    wmma::load_matrix_sync(factor, factors, 0, wmma::mem_col_major);
    for (int c = 0; c < kDim / 16; ++c) {
        for (int e = 0; e < factor.num_elements; ++e) o[c].x[e] *= factor.x[e];
    }
}

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, float scale) {
    __shared__ __align__(32) float scores[16 * kPitch];  // column j of S starts at j * kPitch
    __shared__ __align__(32) T weights[16 * kWeights];
    __shared__ __align__(32) float factors[16];
    __shared__ __align__(32) float staged[16 * kOut];
    const int row = threadIdx.x % 16;  // lanes r and r + 16 both keep the statistics of row r
    q += blockIdx.x * 16 * kDim;
    out += blockIdx.x * 16 * kDim;

    Accumulator o[kDim / 16];
    for (int c = 0; c < kDim / 16; ++c) wmma::fill_fragment(o[c], 0.0f);
    float m = -INFINITY, l = 0;
    for (int first_key = 0; first_key < key_len; first_key += 16) {
        Accumulator s;
        wmma::fill_fragment(s, 0.0f);
        for (int c = 0; c < kDim; c += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> queries;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> keys;  // k^T [16 columns, 16 keys]
            wmma::load_matrix_sync(queries, q + c, kDim);
            wmma::load_matrix_sync(keys, k + first_key * kDim + c, kDim);
            wmma::mma_sync(s, queries, keys, s);
        }
        wmma::store_matrix_sync(scores, s, kPitch, wmma::mem_col_major);
        __syncwarp();

        float p[16], new_m = m;  // row `row` of S, in f32
        for (int j = 0; j < 16; ++j) {
            p[j] = scores[j * kPitch + row] * scale;
            new_m = fmaxf(new_m, p[j]);
        }
        const float correction = expf(m - new_m);
        m = new_m;
        l *= correction;
        for (int j = 0; j < 16; ++j) {
            p[j] = expf(p[j] - new_m);
            l += p[j];
        }
        if (threadIdx.x < 16) {
            factors[row] = correction;
            for (int j = 0; j < 16; ++j)
                weights[row * kWeights + j] = static_cast<T>(p[j]);  // the only rounding of the weights
        }
        __syncwarp();
        multiply_rows(o, factors);

        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> part;
        wmma::load_matrix_sync(part, weights, kWeights);
        for (int c = 0; c < kDim / 16; ++c) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> values;
            wmma::load_matrix_sync(values, v + first_key * kDim + c * 16, kDim);
            wmma::mma_sync(o[c], part, values, o[c]);
        }
        __syncwarp();
    }

    if (threadIdx.x < 16) factors[row] = l > 0 ? 1 / l : 0;
    __syncwarp();
    multiply_rows(o, factors);
    for (int c = 0; c < kDim / 16; ++c) wmma::store_matrix_sync(staged + c * 16, o[c], kOut, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 16 * kDim; i += 32) out[i] = static_cast<T>(staged[i / kDim * kOut + i % kDim]);
}

extern "C" void attention_f16(const __half* q, const __half* k, const __half* v, __half* out, int query_len,
                              int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<query_len / 16, 32, 0, stream>>>(q, k, v, out, query_len, key_len, scale);
}

extern "C" void attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                               __nv_bfloat16* out, int query_len, int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<query_len / 16, 32, 0, stream>>>(q, k, v, out, query_len, key_len, scale);
}
