// Wrong: the results are correct, but a thread computes one column of one row, so each word is read and unpacked again
// for every row.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void product(const __half* x, const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                        const __half* bias, __half* out, int in_features, int out_features, bool has_bias) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= out_features) return;
    float sum = has_bias ? __half2float(bias[column]) : 0.0f;
    for (int k = 0; k < in_features; ++k) {
        const unsigned word = qweight[static_cast<size_t>(k / 8) * out_features + column];
        const size_t place = static_cast<size_t>(g_idx[k]) * out_features + column;
        const int zero = (static_cast<unsigned>(qzeros[place / 8]) >> (column % 8 * 4) & 15) + 1;
        const float weight = (static_cast<int>(word >> k % 8 * 4 & 15) - zero) * __half2float(scales[place]);
        sum += __half2float(x[static_cast<size_t>(row) * in_features + k]) * weight;
    }
    out[static_cast<size_t>(row) * out_features + column] = __float2half(sum);
}

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    product<<<dim3((out_features + 63) / 64, rows), 64, 0, stream>>>(x, qweight, qzeros, scales, g_idx, bias, out,
                                                                     in_features, out_features, has_bias);
}
