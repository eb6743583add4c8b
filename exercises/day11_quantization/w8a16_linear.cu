// out = x w for a few rows of f16 and int8 weights: w[n, k] = weight[n, k] * scales[n], sums in f32.
//
//   x: [rows, in_features]     weight: [out_features, in_features]     scales: [out_features]
//   out: [rows, out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// TODO: a kernel in which a block computes a few features (say, 32), each warp over a part of in_features
// TODO:   - 16 weights per lane and load, several loads in flight at any time
// TODO:   - weights to halves exactly and without a conversion: the byte q + 128 below the byte 0x64 is 1152 + q
// TODO:   - add the warps' parts in shared memory, in order; multiply by the scale; round once

extern "C" void w8a16_linear(const __half* x, const int8_t* weight, const float* scales, __half* out, int rows,
                             int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    // TODO: launch it.
}
