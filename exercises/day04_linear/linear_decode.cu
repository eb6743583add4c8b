// Linear layer for 1 to 16 rows, f16 or bf16 in, f32 sums: out = x weight^T (+ bias). Each weight is used once per row,
// so the kernel is bound by reading the weights. Read every byte once, 16 bytes per access, with loads on all SMs of
// the GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: a kernel, template <typename T>. Tiles of 128 features would give 896 features only 7 blocks: use more.

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                   bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: launch it.
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_decode_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                  int in_features, int out_features, bool has_bias, cudaStream_t stream) {
    linear_decode(x, weight, bias, out, rows, in_features, out_features, has_bias, stream);
}

extern "C" void linear_decode_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                   __nv_bfloat16* out, int rows, int in_features, int out_features, bool has_bias,
                                   cudaStream_t stream) {
    linear_decode(x, weight, bias, out, rows, in_features, out_features, has_bias, stream);
}
