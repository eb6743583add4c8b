// Flash attention in float32 on tensor cores: each float matmul is three tf32 matmuls (llmk/tf32.cuh).
//
//   q, out: [heads, query_len, head_dim]     k, v: [heads, key_len, head_dim]     head_dim: 64 or 128
//
// A warp handles 16 rows; scores and weights stay in its registers. Three things differ from the kernel for 16-bit
// elements:
//   - A float is as wide as two 16-bit elements, so ldmatrix cannot transpose it. Lanes load v themselves, 16 bytes each:
//     four neighboring columns. These go to four fragments, whose columns are therefore 0 4 8 ..., 1 5 9 ..., and so on.
//   - A lane holds columns 2 i and 2 i + 1 of an accumulator's row; operand A needs i and i + 4. The sum over keys may be
//     taken in any order, so key 2 i becomes number i and key 2 i + 1 number i + 4, in P and in V.
//   - Tensor cores truncate when they accumulate. A tile's P V has its own accumulators, and adding it to O rounds.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tf32.cuh"

constexpr int kWarps = 4;  // three such blocks fit on an SM
constexpr int kThreads = 32 * kWarps;
constexpr int kQueries = 16 * kWarps;
constexpr int kKeys = 32;  // keys per tile

template <int DIM>
struct Shape {
    static constexpr int kPitch =
        llmk::RowCopier<float, DIM, kThreads>::kPitch;                   // 16 bytes of padding: no bank conflicts
    static constexpr int kShared = 4 * (kQueries + 2 * kKeys) * kPitch;  // bytes of the tiles of q, k and v
};

template <int DIM, int TERMS>
__global__ void __launch_bounds__(kThreads, 3)
    attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
           float* __restrict__ out, int query_len, int key_len, float scale, bool causal) {
    constexpr int kPitch = Shape<DIM>::kPitch;
    extern __shared__ __align__(128) float q_tile[];  // [kQueries][kPitch]
    float* k_tile = q_tile + kQueries * kPitch;       // [kKeys][kPitch]
    float* v_tile = k_tile + kKeys * kPitch;          // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const long long head = blockIdx.y;
    const int first_query = (gridDim.x - 1 - blockIdx.x) * kQueries;  // the queries that see the most keys start first
    const int first_row = first_query + warp * 16;
    auto seen_by = [&](int query) { return causal ? min(query + 1 + key_len - query_len, key_len) : key_len; };
    const int key_end = seen_by(min(first_query + kQueries, query_len) - 1);
    q += (head * query_len + first_query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;
    const llmk::RowCopier<float, DIM, kThreads> copier(DIM, true);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    copier.template copy<kKeys>(k_tile, k, key_end);

    // For the first fragment of each tile: the rows of q and k whose addresses this lane passes to ldmatrix_x4, and the
    // part of v that it loads itself.
    const float* my_queries = q_tile + (warp * 16 + lane % 16) * kPitch + lane / 16 * 4;
    const float* my_keys = k_tile + (lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 4;
    const float* my_values = v_tile + lane % 4 * 2 * kPitch + lane / 4 * 4;
    // With c = 32 b + 8 (lane % 4) + f, elements 0 and 1 of o[b][f] are columns c and c + 4 of row lane / 4. Elements 2
    // and 3 are the same columns of row lane / 4 + 8.
    float o[DIM / 32][4][4] = {};
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {};
    const float to_base_2 = scale * llmk::kLog2E;

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        llmk::cp_async_wait_all_and_sync();  // this tile of k has arrived; the previous tile of v is free
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
                llmk::mma_3xtf32<TERMS>(s[2 * j], small[2 * j], queries, keys[0], keys[1]);
                llmk::mma_3xtf32<TERMS>(s[2 * j + 1], small[2 * j + 1], queries, keys[2], keys[3]);
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

        llmk::cp_async_wait_all_and_sync();  // this tile of v has arrived; the tile of k is free
        k += kKeys * DIM;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_end - first_key - kKeys);

        // O = O correction + P V, with the tile's P V in its own accumulators, so that the addition to O rounds.
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
                llmk::mma_3xtf32<TERMS>(part[0], part[0], weights[j], llmk::split(even.x), llmk::split(odd.x));
                llmk::mma_3xtf32<TERMS>(part[1], part[1], weights[j], llmk::split(even.y), llmk::split(odd.y));
                llmk::mma_3xtf32<TERMS>(part[2], part[2], weights[j], llmk::split(even.z), llmk::split(odd.z));
                llmk::mma_3xtf32<TERMS>(part[3], part[3], weights[j], llmk::split(even.w), llmk::split(odd.w));
            }
#pragma unroll
            for (int f = 0; f < 4; ++f) {
#pragma unroll
                for (int e = 0; e < 4; ++e) o[c][f][e] = o[c][f][e] * correction[e / 2] + part[f][e];
            }
        }
    }
    __pipeline_wait_prior(0);  // if no query sees a key, the copies of the queries may still be pending

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

template <int DIM, int TERMS>
void launch(const float* q, const float* k, const float* v, float* out, int heads, int query_len, int key_len,
            float scale, bool causal, cudaStream_t stream) {
    const dim3 grid((query_len + kQueries - 1) / kQueries, heads);
    cudaFuncSetAttribute(attend<DIM, TERMS>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape<DIM>::kShared);
    attend<DIM, TERMS>
        <<<grid, kThreads, Shape<DIM>::kShared, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}

// scale > 0; all tensors 16-byte aligned.
extern "C" void attention(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                          int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim == 64 ? launch<64, 3> : launch<128, 3>;
    launch_for(q, k, v, out, heads, query_len, key_len, scale, causal, stream);
}

// The same attention in plain tf32: one matmul of rounded numbers instead of three.
extern "C" void attention_tf32(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim == 64 ? launch<64, 1> : launch<128, 1>;
    launch_for(q, k, v, out, heads, query_len, key_len, scale, causal, stream);
}
