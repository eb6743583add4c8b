// out = x w + bias for a few rows of f16 and int4 weights in GPTQ's format: w = (q - zero) * scale, sums in f32.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]
//   g_idx: [in_features]     bias: [out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: a kernel in which a block computes a few columns (say, 32), each warp over a part of in_features
// TODO:   - 16 bytes of qweight per lane, several loads in flight at any time
// TODO:   - (q - zero) exactly, through 0x6400 | q; sum each group in float, then multiply by its scale
// TODO:   - a path for act_order, and for a group_size that is not a multiple of the kernel's step in k
// TODO:   - add the warps' parts in shared memory, in order; add the bias; round once

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: launch it.
}
