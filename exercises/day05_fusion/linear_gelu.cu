// Linear layer with GELU in its epilogue, f32, f16 or bf16 in, f32 sums: out = gelu(x weight^T + bias),
// gelu(v) = v Phi(v) = v / 2 (1 + erf(v / sqrt(2))).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

constexpr int kTile = 128;  // a block computes kTile x kTile outputs

// TODO: gelu(v), the exact one.

// TODO: a kernel, template <typename T>, that computes a tile of x weight^T as on day 4 and applies bias and GELU
// before it stores anything. Tensor cores have no f32 inputs: use multiply-adds for f32.

template <typename T>
void linear_gelu(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    // TODO: launch one block for each tile of outputs. You may choose another tile.
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_gelu_f32(const float* x, const float* weight, const float* bias, float* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_gelu_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}

extern "C" void linear_gelu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                 __nv_bfloat16* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    linear_gelu(x, weight, bias, out, rows, in_features, out_features, stream);
}
