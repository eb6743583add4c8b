// Wrong: each thread computes one element of y, without tensor cores.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void thread_per_output(const __nv_bfloat16* x, const unsigned char* w, const __nv_fp8_e8m0* w_scales,
                                  __nv_bfloat16* y, int rows, int in, int out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= out) return;
    float sum = 0.0f;
    for (int k = 0; k < in; k += 2) {
        const size_t place = static_cast<size_t>(column) * in + k;
        __nv_fp4x2_e2m1 pair;
        pair.__x = w[place / 2];
        const float2 numbers = static_cast<float2>(pair);
        const float scale = static_cast<float>(w_scales[place / 32]);
        sum += numbers.x * scale * __bfloat162float(x[static_cast<size_t>(row) * in + k]);
        sum += numbers.y * scale * __bfloat162float(x[static_cast<size_t>(row) * in + k + 1]);
    }
    y[static_cast<size_t>(row) * out + column] = __float2bfloat16(sum);
}

extern "C" void mxfp4_gemm(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales,
                           __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    thread_per_output<<<dim3((out_features + 127) / 128, rows), 128, 0, stream>>>(
        x, w, reinterpret_cast<const __nv_fp8_e8m0*>(w_scales), y, rows, in_features, out_features);
}
