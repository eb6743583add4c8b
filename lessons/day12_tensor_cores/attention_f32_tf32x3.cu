// Attention in float32 on tensor cores: each product of floats is three products of tf32 numbers (llmk/tf32.cuh).
//
//   q, out: [heads, query_len, head_dim]     k, v: [heads, key_len, head_dim]     head_dim: 64 or 128
//
// A warp has 16 rows, and scores and weights stay in its registers. Three things differ from the kernel for 16-bit numbers:
//   - a float is as wide as two 16-bit numbers, so ldmatrix cannot transpose: lanes read v themselves, 16 bytes each, of four
//     neighboring columns. These go to four fragments, whose columns are thus 0 4 8 ..., 1 5 9 ..., and so on;
//   - an accumulator has columns 2 i and 2 i + 1 of its row, operand A wants i and i + 4. The sum over keys may be taken in
//     any order: let key 2 i be number i and key 2 i + 1 number i + 4, in P and in V;
//   - tensor cores do not round what they add up. A tile's P V is a sum of its own; what is added to O then is rounded.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tf32.cuh"

constexpr int kWarps = 4;  // three such blocks fit on a streaming multiprocessor (SM)
constexpr int kThreads = 32 * kWarps;
constexpr int kQueries = 16 * kWarps;
constexpr int kKeys = 32;  // of one tile

template <int DIM>
struct Shape {
    static constexpr int kPitch =
        llmk::RowCopier<float, DIM, kThreads>::kPitch;                   // 16 bytes of padding: no bank conflict
    static constexpr int kShared = 4 * (kQueries + 2 * kKeys) * kPitch;  // bytes of the tiles of q, k and v
};

template <int DIM, int PRODUCTS>
__global__ void __launch_bounds__(kThreads, 3)
    attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
           float* __restrict__ out, int query_len, int key_len, float scale, bool causal) {
    constexpr int kPitch = Shape<DIM>::kPitch;
    extern __shared__ __align__(128) float q_tile[];  // [kQueries][kPitch]
    float* k_tile = q_tile + kQueries * kPitch;       // [kKeys][kPitch]
    float* v_tile = k_tile + kKeys * kPitch;          // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const long long head = blockIdx.y;
    const int first_query = (gridDim.x - 1 - blockIdx.x) * kQueries;  // the queries that see most start first
    const int first_row = first_query + warp * 16;
    auto seen_by = [&](int query) { return causal ? min(query + 1 + key_len - query_len, key_len) : key_len; };
    const int key_end = seen_by(min(first_query + kQueries, query_len) - 1);
    q += (head * query_len + first_query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;
    const llmk::RowCopier<float, DIM, kThreads> copier(DIM, true);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    copier.template copy<kKeys>(k_tile, k, key_end);

    // The row that this lane names to ldmatrix_x4, in the first fragment of each tile; the piece of v that it reads.
    const float* my_queries = q_tile + (warp * 16 + lane % 16) * kPitch + lane / 16 * 4;
    const float* my_keys = k_tile + (lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 4;
    const float* my_values = v_tile + lane % 4 * 2 * kPitch + lane / 4 * 4;
    float o[DIM / 32][4][4] =
        {};  // of row lane / 4, columns 8 (lane % 4) + f in [f][0] and 4 more in [f][1]; row + 8 in 2, 3
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {};
    const float to_base_2 = scale * llmk::kLog2E;

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        llmk::
            cp_async_wait_all_and_sync();  // this tile of k is here, and no thread reads the tile of v before any more
        copier.template copy<kKeys>(v_tile, v, key_end - first_key);
        v += kKeys * DIM;

        // S = Q K^T
        float s[kKeys / 8][4] = {}, small[kKeys / 8][4] = {};
#pragma unroll
        for (int c = 0; c < DIM / 8; ++c) {
            unsigned bits[4];
            llmk::ldmatrix_x4(bits, my_queries + c * 8);
            llmk::Split queries[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) queries[e] = llmk::split(__uint_as_float(bits[e]));
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                llmk::ldmatrix_x4(bits, my_keys + j * 16 * kPitch + c * 8);
                llmk::Split keys[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) keys[e] = llmk::split(__uint_as_float(bits[e]));
                llmk::mma_3xtf32<PRODUCTS>(s[2 * j], small[2 * j], queries, keys[0], keys[1]);
                llmk::mma_3xtf32<PRODUCTS>(s[2 * j + 1], small[2 * j + 1], queries, keys[2], keys[3]);
            }
        }

        float correction[2];
        // The online softmax: the four lanes of a row share its maximum; their sums are added at the end.
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int seen = seen_by(first_row + h * 8 + lane / 4) - first_key - lane % 4 * 2;
            float largest = m[h];
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& score = s[j][2 * h + e];
                    score = j * 8 + e < seen ? (score + small[j][2 * h + e]) * to_base_2 : -INFINITY;
                    largest = fmaxf(largest, score);
                }
            }
            largest = llmk::warp_max<4>(largest);
            const float base = llmk::finite_max_or_zero(largest);
            correction[h] = llmk::ex2_approx(m[h] - base);
            m[h] = largest;
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& score = s[j][2 * h + e];
                    score = llmk::ex2_approx(score - base);
                    sum += score;
                }
            }
            l[h] = l[h] * correction[h] + sum;
        }

        llmk::cp_async_wait_all_and_sync();  // this tile of v is here, and no thread reads the tile of k any more
        k += kKeys * DIM;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_end - first_key - kKeys);

        // O = O correction + P V, the product of one tile by itself first: what is added to O is rounded.
        llmk::Split weights[kKeys / 8][4];
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) weights[j][e] = llmk::split(s[j][e / 2 + e % 2 * 2]);
        }
#pragma unroll
        for (int c = 0; c < DIM / 32; ++c) {
            float part[4][4] = {};
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
                const float4 even = *reinterpret_cast<const float4*>(my_values + j * 8 * kPitch + c * 32);
                const float4 odd = *reinterpret_cast<const float4*>(my_values + (j * 8 + 1) * kPitch + c * 32);
                llmk::mma_3xtf32<PRODUCTS>(part[0], part[0], weights[j], llmk::split(even.x), llmk::split(odd.x));
                llmk::mma_3xtf32<PRODUCTS>(part[1], part[1], weights[j], llmk::split(even.y), llmk::split(odd.y));
                llmk::mma_3xtf32<PRODUCTS>(part[2], part[2], weights[j], llmk::split(even.z), llmk::split(odd.z));
                llmk::mma_3xtf32<PRODUCTS>(part[3], part[3], weights[j], llmk::split(even.w), llmk::split(odd.w));
            }
#pragma unroll
            for (int f = 0; f < 4; ++f) {
#pragma unroll
                for (int e = 0; e < 4; ++e) o[c][f][e] = o[c][f][e] * correction[e / 2] + part[f][e];
            }
        }
    }
    __pipeline_wait_prior(0);  // if no query sees a key, the queries may still be on their way

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float inverse = llmk::reciprocal_or_zero(llmk::warp_sum<4>(l[h]));
        const int row = warp * 16 + h * 8 + lane / 4;
        if (first_query + row >= query_len) continue;
        float4* to = reinterpret_cast<float4*>(out + (head * query_len + first_query + row) * DIM + lane % 4 * 8);
#pragma unroll
        for (int c = 0; c < DIM / 32; ++c) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int x = 2 * h + e;
                to[c * 8 + e] =
                    make_float4(o[c][0][x] * inverse, o[c][1][x] * inverse, o[c][2][x] * inverse, o[c][3][x] * inverse);
            }
        }
    }
}

template <int DIM, int PRODUCTS>
void launch(const float* q, const float* k, const float* v, float* out, int heads, int query_len, int key_len,
            float scale, bool causal, cudaStream_t stream) {
    const dim3 grid((query_len + kQueries - 1) / kQueries, heads);
    cudaFuncSetAttribute(attend<DIM, PRODUCTS>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape<DIM>::kShared);
    attend<DIM, PRODUCTS>
        <<<grid, kThreads, Shape<DIM>::kShared, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}

// scale > 0; all tensors 16-byte aligned.
extern "C" void attention(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                          int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim == 64 ? launch<64, 3> : launch<128, 3>;
    launch_for(q, k, v, out, heads, query_len, key_len, scale, causal, stream);
}

// The same in plain tf32: one product, of the rounded numbers.
extern "C" void attention_tf32(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim == 64 ? launch<64, 1> : launch<128, 1>;
    launch_for(q, k, v, out, heads, query_len, key_len, scale, causal, stream);
}
