// out = x w + bias for a few rows of f16 and int4 weights in GPTQ's format: w = (q - zero) * scale, sums in f32.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]
//   g_idx: [in_features]     bias: [out_features]
//
// The matmul is in llmk/int4_rows.cuh, which ln_qkv_gptq uses as well. A block copies all rows of x to shared memory
// while its first words of qweight are in flight. One kernel: no sums pass through global memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/int4_rows.cuh"

using S = llmk::Int4Rows;

// Return eight neighbors of a row of x as pairs, in the order of unpacked words: (0, 4), (1, 5), (2, 6), (3, 7).
__device__ __forceinline__ uint4 pair_up(uint4 x) {
    return make_uint4(__byte_perm(x.x, x.z, 0x5410), __byte_perm(x.x, x.z, 0x7632), __byte_perm(x.y, x.w, 0x5410),
                      __byte_perm(x.y, x.w, 0x7632));
}

struct Linear {
    const __half* x;
    const __half* bias;
    __half* out;
    int rows, in_features, out_features, segment, pitch, parts;
    bool has_bias;

    // Several warps share a row if there are fewer rows than warps.
    __device__ void prepare(__half* to, int first) const {
        const int row = threadIdx.x / (32 * parts), eights = min(segment, in_features - first) / 8;
        if (row >= rows) return;
        const uint4* from = reinterpret_cast<const uint4*>(x + static_cast<size_t>(row) * in_features + first);
        uint4* to_row = reinterpret_cast<uint4*>(to + row * pitch);
#pragma unroll 8
        for (int e = threadIdx.x % (32 * parts); e < eights; e += 32 * parts) to_row[e] = pair_up(from[e]);
    }

    __device__ void store(int row, int column, float sum) const {
        if (has_bias) sum += __half2float(bias[column]);
        out[static_cast<size_t>(row) * out_features + column] = __float2half(sum);
    }
};

// kTiles: tiles of 8 rows per block. kPlain: groups are in order and no chunk spans two (see llmk::Int4Rows).
template <int kTiles, bool kPlain>
__global__ void __launch_bounds__(S::kThreads, 1) few_rows(llmk::Int4Layer w, S share, Linear job) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int first_row = blockIdx.y * share.rows;
    job.x += static_cast<size_t>(first_row) * job.in_features;
    job.out += static_cast<size_t>(first_row) * job.out_features;
    job.rows = min(share.rows, job.rows - first_row);
    llmk::skinny_int4_gemm<kTiles, kPlain>(w, share, job.rows, shared, job);
}

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const llmk::Int4Layer w = {qweight, qzeros, scales, g_idx, in_features, out_features, group_size, act_order};
    const S share(w, rows, false);
    const Linear job = {x,           bias,        out,     rows, in_features, out_features, share.segment,
                        share.pitch, share.parts, has_bias};
    const auto kernel = share.rows > 8 ? (share.plain ? few_rows<2, true> : few_rows<2, false>)
                                       : (share.plain ? few_rows<1, true> : few_rows<1, false>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, share.bytes);
    kernel<<<share.grid, S::kThreads, share.bytes, stream>>>(w, share, job);
}
