// LayerNorm, then query, key and value by one matmul with int4 weights in GPTQ's format: w = (q - zero) * scale.
//
//   x: [rows, C]     weight, beta: [C]     bias: [3 C]     out: [3, rows, C]     rows = batch * length
//   qweight: [C / 8, 3 C]     qzeros: [groups, 3 C / 8]     scales: [groups, 3 C]     g_idx: [C]
//   normalized: [rows, C], memory for the normalized rows
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: for few rows a kernel that normalizes all rows into shared memory and continues as gptq_linear

// TODO: for many rows a kernel that writes the normalized rows to `normalized`, and a GEMM:
// TODO:   - tiles of 64 to 128 rows by 128 or more columns, on tensor cores, sums in float
// TODO:   - unpack words of qweight in registers, or into shared memory, tile by tile
// TODO:   - column n of the GEMM is out[n / C, row, n % C]

extern "C" void ln_qkv_gptq(const __half* x, const __half* weight, const __half* beta, const int* qweight,
                            const int* qzeros, const __half* scales, const int* g_idx, const __half* bias,
                            __half* normalized, __half* out, int batch, int length, int in_features, int group_size,
                            bool act_order, bool has_bias, float eps, cudaStream_t stream) {
    const int rows = batch * length;
    if (rows == 0 || in_features == 0) return;
    // TODO: launch them.
}
