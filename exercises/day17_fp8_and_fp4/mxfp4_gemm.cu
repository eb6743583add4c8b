// y = x w^T with weights in MXFP4, which become bf16 in registers, right before mma.sync.
//
//   x: [rows, in]     w: [out, in / 2], two patterns of e2m1 per byte     w_scales: [out, in / 32], e8m0     y: [rows, out]
//
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

// TODO: a kernel in which a warp multiplies 16 rows of w by 8 or more rows of x with mma_m16n8k16:
// TODO:   - a lane loads 16 bytes of w: 32 numbers, one scale. Load the next ones before you use these
// TODO:   - e2m1 * 2^(pattern - 127) is exact in bf16: a shift, a mask and a multiplication for two numbers
// TODO:   - the order of k is free, if x and w use the same order
// TODO:   - warps divide k, and add their sums in shared memory

extern "C" void mxfp4_gemm(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales,
                           __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: choose the tile of rows by the number of rows, and launch it.
}
