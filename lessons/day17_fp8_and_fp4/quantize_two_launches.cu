// Quantize to e4m3 in groups of 128, the obvious way: one launch finds the largest number of each group, a second one
// divides by it.
//
//   x: [rows, columns], columns a multiple of 128     q: [rows, columns], patterns of e4m3     scales: [groups]
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void group_amax(const __nv_bfloat16* x, float* scales) {
    __shared__ float size[128];
    const size_t i = static_cast<size_t>(blockIdx.x) * 128 + threadIdx.x;
    size[threadIdx.x] = fabsf(__bfloat162float(x[i]));
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) size[threadIdx.x] = fmaxf(size[threadIdx.x], size[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = fmaxf(size[0], 1e-10f) / 448.0f;
}

__global__ void divide(const __nv_bfloat16* x, const float* scales, unsigned char* q) {
    const size_t i = static_cast<size_t>(blockIdx.x) * 128 + threadIdx.x;
    const __nv_fp8_e4m3 value(__bfloat162float(x[i]) / scales[blockIdx.x]);
    q[i] = value.__x;
}

extern "C" void quantize_two_launches(const __nv_bfloat16* x, unsigned char* q, float* scales, int rows, int columns,
                                      cudaStream_t stream) {
    const unsigned groups = static_cast<unsigned>(static_cast<size_t>(rows) * columns / 128);
    group_amax<<<groups, 128, 0, stream>>>(x, scales);
    divide<<<groups, 128, 0, stream>>>(x, scales, q);
}
