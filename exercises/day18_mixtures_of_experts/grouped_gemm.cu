// A grouped matmul on Hopper's tensor cores: y[r] = x[r] w[e]^T, where expert e has rows offsets[e] ... offsets[e+1] - 1.
//
//   x: [rows, in]     w: [experts, out, in]     y: [rows, out]     offsets: [experts + 1]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/grouped_tiles.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel, template <typename T>: persistent blocks that find their tiles with llmk::GroupedTiles, load them by TMA
// TODO: and multiply with wgmma, as in wgmma_linear. Do not store a row of the next group.

template <typename T>
static void grouped_gemm(const T* x, const T* w, const int* offsets, T* y, int rows, int experts, int in, int out,
                         cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    // TODO: tensor maps of x, of w with one matrix per expert, and, for stores by TMA, of y; then launch.
}

extern "C" void grouped_gemm_f16(const __half* x, const __half* w, const int* offsets, __half* y, int rows, int experts,
                                 int in_features, int out_features, cudaStream_t stream) {
    grouped_gemm(x, w, offsets, y, rows, experts, in_features, out_features, stream);
}

extern "C" void grouped_gemm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, const int* offsets, __nv_bfloat16* y,
                                  int rows, int experts, int in_features, int out_features, cudaStream_t stream) {
    grouped_gemm(x, w, offsets, y, rows, experts, in_features, out_features, stream);
}
