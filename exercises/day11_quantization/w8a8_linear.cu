// out = x w for many rows of int8 and int8 weights, on tensor cores with int32 sums:
//   out[m, n] = (sum over k of x[m, k] * weight[n, k]) * x_scales[m] * w_scales[n]
//
//   x: [rows, in_features]     x_scales: [rows]     weight: [out_features, in_features]     w_scales: [out_features]
//   out: [rows, out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// TODO: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32, as inline PTX

// TODO: a kernel with tiles of x and weight in shared memory, copied while the previous ones are used
// TODO:   - ldmatrix moves pairs of bytes: four of its 8 x 8 matrices are 16 rows of 32 bytes
// TODO:   - int32 sums; both scales and one rounding at the end

extern "C" void w8a8_linear(const int8_t* x, const float* x_scales, const int8_t* weight, const float* w_scales,
                            __half* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: launch it.
}
