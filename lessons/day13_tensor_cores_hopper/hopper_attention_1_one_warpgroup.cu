// Flash attention with TMA and wgmma, step 1: a warpgroup handles 64 queries of a head. For each tile of 128 keys it
// loads k and v, waits, multiplies, waits, computes the softmax, multiplies and waits. head_dim is 128; lengths are
// multiples of the tiles.
//
//   q, k, v, out: [batch * heads, tokens, 128]
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kDim = 128, kQueries = 64, kKeys = 128;
constexpr int kPlane = 2 * 64;  // bytes of a row of a plane: tiles have the layout [kDim / 64][rows][64]
constexpr int kQueryBytes = 2 * kQueries * kDim, kTileBytes = 2 * kKeys * kDim;
constexpr int kSharedBytes = 1024 + kQueryBytes + 2 * kTileBytes + 8;

__device__ __forceinline__ float over_row(float x, bool maximum) {
    for (int distance = 1; distance < 4; distance *= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, distance);
        x = maximum ? fmaxf(x, other) : x + other;
    }
    return x;
}

__global__ void __launch_bounds__(128, 1)
    attention_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                     const __grid_constant__ CUtensorMap v_map, __nv_bfloat16* out, int tokens, float scale_log2) {
    extern __shared__ unsigned char shared[];
    unsigned char* q_tile = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char *k_tile = q_tile + kQueryBytes, *v_tile = k_tile + kTileBytes;
    uint64_t* arrived = reinterpret_cast<uint64_t*>(v_tile + kTileBytes);
    const int query0 = blockIdx.x * kQueries, head = blockIdx.y, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(arrived, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    float s[kKeys / 2], o[kDim / 2] = {}, maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int key0 = 0; key0 < tokens; key0 += kKeys) {
        if (threadIdx.x == 0) {
            llmk::mbarrier_arrive_expect_tx(arrived, 2 * kTileBytes + (key0 == 0 ? kQueryBytes : 0));
            for (int plane = 0; plane < kDim / 64; ++plane) {
                if (key0 == 0) {
                    llmk::tma_load(q_tile + plane * kQueries * kPlane, &q_map, arrived, plane * 64, query0, head);
                }
                llmk::tma_load(k_tile + plane * kKeys * kPlane, &k_map, arrived, plane * 64, key0, head);
                llmk::tma_load(v_tile + plane * kKeys * kPlane, &v_map, arrived, plane * 64, key0, head);
            }
        }
        llmk::mbarrier_wait_parity(arrived, key0 / kKeys % 2);

        const uint64_t q = llmk::make_smem_desc(q_tile), k = llmk::make_smem_desc(k_tile);
        llmk::wgmma_fence();
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) {  // S = q k^T
            llmk::wgmma_ss<__nv_bfloat16>(s, q + d / 4 * (kQueries * kPlane / 16) + d % 4 * 2,
                                          k + d / 4 * (kKeys * kPlane / 16) + d % 4 * 2, d > 0);
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();

        unsigned p[kKeys / 16][4];
        for (int h = 0; h < 2; ++h) {  // the online softmax of this thread's two rows
            float m = maximum[h];
#pragma unroll
            for (int g = 0; g < kKeys / 8; ++g) m = fmaxf(m, fmaxf(s[4 * g + 2 * h], s[4 * g + 2 * h + 1]));
            m = over_row(m, true);
            const float correction = llmk::ex2_approx((maximum[h] - m) * scale_log2);
            maximum[h] = m;
            sum[h] *= correction;
#pragma unroll
            for (int g = 0; g < kKeys / 8; ++g) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[4 * g + 2 * h + e];
                    x = llmk::ex2_approx((x - m) * scale_log2);
                    sum[h] += x;
                }
            }
#pragma unroll
            for (int g = 0; g < kDim / 8; ++g) {
                o[4 * g + 2 * h] *= correction;
                o[4 * g + 2 * h + 1] *= correction;
            }
        }
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {  // the accumulators of S have the layout of operand A
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                p[j][i] = llmk::pack_pair<__nv_bfloat16>(s[8 * j + 2 * i], s[8 * j + 2 * i + 1]);
            }
        }

        const uint64_t v = llmk::make_smem_desc(v_tile, kKeys * kPlane);
        llmk::wgmma_fence();
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {  // O += P v
            llmk::wgmma_rs<__nv_bfloat16>(o, p[j], v + j * (16 * kPlane / 16), key0 > 0 || j > 0);
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();
        __syncthreads();  // all threads are done with the tiles
    }

    for (int h = 0; h < 2; ++h) {
        const float factor = 1 / over_row(sum[h], false);
        const long long row = static_cast<long long>(head) * tokens + query0 + threadIdx.x / 32 * 16 + lane / 4 + 8 * h;
#pragma unroll
        for (int g = 0; g < kDim / 8; ++g) {
            *reinterpret_cast<__nv_bfloat162*>(out + row * kDim + 8 * g + lane % 4 * 2) =
                __floats2bfloat162_rn(o[4 * g + 2 * h] * factor, o[4 * g + 2 * h + 1] * factor);
        }
    }
}

extern "C" void attention(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* out,
                          int heads, int tokens, float scale, cudaStream_t stream) {
    if (heads == 0 || tokens == 0 || tokens % kKeys != 0) return;
    CUtensorMap q_map, k_map, v_map;
    const long long head_stride = static_cast<long long>(tokens) * kDim;
    if (llmk::make_tensor_map(&q_map, q, kDim, tokens, heads, kDim, head_stride, kQueries) != cudaSuccess ||
        llmk::make_tensor_map(&k_map, k, kDim, tokens, heads, kDim, head_stride, kKeys) != cudaSuccess ||
        llmk::make_tensor_map(&v_map, v, kDim, tokens, heads, kDim, head_stride, kKeys) != cudaSuccess) {
        return;
    }
    cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    attention_kernel<<<dim3(tokens / kQueries, heads), 128, kSharedBytes, stream>>>(q_map, k_map, v_map, out, tokens,
                                                                                    scale * llmk::kLog2E);
}
