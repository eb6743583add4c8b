// RMSNorm of each row: out = x / sqrt(mean(x^2) + eps) * weight, for f32, f16 and bf16, any width.
//
// TODO: read x once: a thread keeps its elements in registers until it writes them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// TODO: add over the lanes of a warp, then over the warps of a block; every thread needs the result.

// TODO: the kernel, a template over the dtype T, with one block per row. Sum in float, whatever T is.

template <typename T>
void launch(const T* x, const T* weight, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    // TODO: choose the number of threads from cols, and start one block per row.
}

extern "C" void rms_norm_f32(const float* x, const float* weight, float* out, int rows, int cols, float eps,
                             cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}

extern "C" void rms_norm_f16(const __half* x, const __half* weight, __half* out, int rows, int cols, float eps,
                             cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}

extern "C" void rms_norm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int rows,
                              int cols, float eps, cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}
