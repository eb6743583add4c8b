// y = x w^T in FP8 with a scale for each 1 x 128 of x and each 128 x 128 of w: tensor cores sum over 128 values of k,
// and all other sums are in f32 registers.
//
//   x: [rows, in]     x_scales: [rows, groups]     groups = ceil(in / 128)
//   w: [out, in]      w_scales: [ceil(out / 128), groups]     y: [rows, out]
//
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel in which a stage of the ring is one group of k:
// TODO:   - four wgmma into accumulators that begin at zero in each group
// TODO:   - wait for them, release the stage, and add scale * partial to f32 registers
// TODO:   - two warpgroups with 64 x 128 of y each: 64 partial sums and 64 sums per thread
// TODO:   - few rows make few tiles: then let the blocks of a cluster divide k

extern "C" void fp8_block_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales,
                               const float* w_scales, __nv_bfloat16* y, int rows, int in_features, int out_features,
                               cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: tensor maps, and the launch.
}
