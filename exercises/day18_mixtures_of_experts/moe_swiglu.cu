// Gate, up and SwiGLU of all experts in one kernel: y[r] = silu(x[r] g^T) * (x[r] u^T), g and u of the row's expert.
//
//   x: [rows, in]     w: [experts, 2 inter, in], g above u     y: [rows, inter]     offsets: [experts + 1]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/grouped_tiles.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel, template <typename T>: as in your grouped_gemm, but a tile of w is rows of g and the rows of u that belong
// TODO: to them, and silu(gate) * up is computed from the accumulators before it is rounded.

template <typename T>
static void moe_swiglu(const T* x, const T* w, const int* offsets, T* y, int rows, int experts, int in, int inter,
                       cudaStream_t stream) {
    if (rows == 0 || inter == 0) return;
    // TODO: tensor maps of x, of w with one matrix of 2 inter rows per expert, and of y; then launch.
}

extern "C" void moe_swiglu_f16(const __half* x, const __half* w, const int* offsets, __half* y, int rows, int experts,
                               int in_features, int intermediate, cudaStream_t stream) {
    moe_swiglu(x, w, offsets, y, rows, experts, in_features, intermediate, stream);
}

extern "C" void moe_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, const int* offsets, __nv_bfloat16* y,
                                int rows, int experts, int in_features, int intermediate, cudaStream_t stream) {
    moe_swiglu(x, w, offsets, y, rows, experts, in_features, intermediate, stream);
}
