// y = alpha x w^T with x and w in NVFP4, on Blackwell's tensor cores: tcgen05.mma multiplies by the scale factors itself.
//
//   x: [rows, in / 2], two e2m1 per byte     x_scales: [rows, in / 16], e4m3     alpha: [1]
//   w: [out, in / 2]                         w_scales: [out, in / 16]            y: [rows, out]
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05_block_scale.cuh"
#include "llmk/tma.cuh"

// TODO: a kernel as in tcgen05_linear, for one block instead of two:
// TODO:   - a row of a tile is 128 bytes, so 256 of k; an mma is 64 deep, which is 32 bytes
// TODO:   - threads place the scales of each tile in shared memory, and tcgen05.cp copies them to tensor memory
// TODO:   - llmk::tcgen05_mma_mxf4nvf4 and the functions around it are in llmk/tcgen05_block_scale.cuh
// TODO:   - the epilogue multiplies by alpha

extern "C" void fp4_block_scaled_gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales,
                                      const unsigned char* w_scales, const float* alpha, float* y, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: tensor maps of x and w, with bytes as elements (llmk::make_tensor_map_u8); then launch.
}
