// Softmax of each row: out = exp(x - max) / sum(exp(x - max)), for f32, f16 and bf16, any width.
//
// TODO: online: compute the maximum and the sum in one pass. Keep the row in registers until it is written.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

// The maximum of some elements, and the sum of exp(element - maximum). An empty set has -FLT_MAX, not -infinity, so
// that no difference of two maxima is infinity - infinity, which is NaN.
struct Running {
    float maximum;
    float sum;
};

__device__ Running nothing_seen() { return {-FLT_MAX, 0.0f}; }

// TODO: combine(a, b): the state of the union of two sets. Which sum must be rescaled, and by how much?

// TODO: combine the states of the 32 lanes of a warp (__shfl_xor_sync), then of the warps of a block (one barrier).

// TODO: the kernel, a template over the dtype T, with one block per row.

template <typename T>
void launch(const T* x, T* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    // TODO: choose the number of threads from cols, and start one block per row.
}

extern "C" void softmax_f32(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_f16(const __half* x, __half* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_bf16(const __nv_bfloat16* x, __nv_bfloat16* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}
