// Linear layer on tensor cores through WMMA: f16 or bf16 in, f32 accumulators, out = x weight^T + bias.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

// TODO: a kernel, template <typename T>, whose warps multiply 16 x 16 x 16 tiles with wmma::mma_sync.

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: launch one block per tile of 64 x 64 or more outputs.
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_wmma_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_wmma(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_wmma_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                 __nv_bfloat16* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    linear_wmma(x, weight, bias, out, rows, in_features, out_features, stream);
}
