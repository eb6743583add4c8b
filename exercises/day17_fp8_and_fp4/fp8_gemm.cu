// y = (x x_scales) (w w_scales)^T in FP8: TMA loads tiles of e4m3, wgmma multiplies them, and the scales of rows and
// columns are applied once, in the epilogue.
//
//   x: [rows, in]     w: [out, in]     x_scales: [rows]     w_scales: [out]     y: [rows, out]
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel as in wgmma_linear, with tiles of e4m3:
// TODO:   - a row of a tile is 128 bytes, so 128 of k; a wgmma is 32 deep, which is 32 bytes
// TODO:   - llmk::make_tensor_map_u8 and llmk::wgmma_ss_e4m3 are in llmk/fp8.cuh
// TODO:   - the epilogue multiplies each sum by the scale of its row and the scale of its column

extern "C" void fp8_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, const float* w_scales,
                         __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: tensor maps of x, of w and, for stores by TMA, of y; then launch.
}
