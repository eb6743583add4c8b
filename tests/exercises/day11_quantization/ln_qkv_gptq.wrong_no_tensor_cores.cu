// Wrong: the results are correct, but slow for many rows. One kernel normalizes, then each thread of another computes
// one output.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void normalize(const __half* x, const __half* weight, const __half* beta, __half* y, int width, float eps) {
    const size_t from = static_cast<size_t>(blockIdx.x) * width;
    float mean = 0, squares = 0;
    for (int i = 0; i < width; ++i) mean += __half2float(x[from + i]) / width;
    for (int i = 0; i < width; ++i) {
        const float apart = __half2float(x[from + i]) - mean;
        squares += apart * apart;
    }
    const float factor = rsqrtf(squares / width + eps);
    for (int i = threadIdx.x; i < width; i += 32) {
        const float normal = (__half2float(x[from + i]) - mean) * factor;
        y[from + i] = __float2half(normal * __half2float(weight[i]) + __half2float(beta[i]));
    }
}

__global__ void product(const __half* y, const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                        const __half* bias, __half* out, int rows, int width, bool has_bias) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    const int columns = 3 * width;
    if (column >= columns) return;
    float sum = has_bias ? __half2float(bias[column]) : 0.0f;
    for (int k = 0; k < width; ++k) {
        const unsigned word = qweight[static_cast<size_t>(k / 8) * columns + column];
        const size_t place = static_cast<size_t>(g_idx[k]) * columns + column;
        const int zero = (static_cast<unsigned>(qzeros[place / 8]) >> (column % 8 * 4) & 15) + 1;
        const float weight = (static_cast<int>(word >> k % 8 * 4 & 15) - zero) * __half2float(scales[place]);
        sum += __half2float(y[static_cast<size_t>(row) * width + k]) * weight;
    }
    out[(static_cast<size_t>(column / width) * rows + row) * width + column % width] = __float2half(sum);
}

extern "C" void ln_qkv_gptq(const __half* x, const __half* weight, const __half* beta, const int* qweight,
                            const int* qzeros, const __half* scales, const int* g_idx, const __half* bias,
                            __half* normalized, __half* out, int batch, int length, int in_features, int group_size,
                            bool act_order, bool has_bias, float eps, cudaStream_t stream) {
    const int rows = batch * length;
    if (rows == 0 || in_features == 0) return;
    normalize<<<rows, 32, 0, stream>>>(x, weight, beta, normalized, in_features, eps);
    product<<<dim3((3 * in_features + 63) / 64, rows), 64, 0, stream>>>(normalized, qweight, qzeros, scales, g_idx,
                                                                        bias, out, rows, in_features, has_bias);
}
