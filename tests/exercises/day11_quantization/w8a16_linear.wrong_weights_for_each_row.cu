// A naive version: a warp for each output. Each weight is read once for each row.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void warp_per_output(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                                int in_features, int out_features) {
    const long long o = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (o >= static_cast<long long>(rows) * out_features) return;
    const long long row = o / out_features, feature = o % out_features;
    float sum = 0.0f;
    for (int k = lane; k < in_features; k += 32) {
        sum += __half2float(x[row * in_features + k]) * static_cast<float>(weight[feature * in_features + k]);
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane == 0) out[o] = __float2half_rn(sum * scales[feature]);
}

extern "C" void w8a16_linear(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                             int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long warps = static_cast<long long>(rows) * out_features;
    warp_per_output<<<static_cast<unsigned>((warps + 7) / 8), 256, 0, stream>>>(x, weight, scales, out, rows,
                                                                                in_features, out_features);
}
