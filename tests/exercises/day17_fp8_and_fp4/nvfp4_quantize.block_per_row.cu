// A block quantizes one row. It rounds with comparisons instead of bit operations.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__device__ unsigned by_comparison(float x) {
    const float size = fabsf(x);
    const unsigned steps = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) +
                           (size >= 3.5f) + (size > 5.0f);
    return signbit(x) ? steps + 8 : steps;
}

__global__ void __launch_bounds__(64)
    block_per_row(const __nv_bfloat16* x, const float* amax, unsigned char* q, unsigned char* scales, int columns) {
    const size_t row = blockIdx.x;
    const float factor = *amax > 0.0f ? 2688.0f / *amax : 0.0f;
    for (int start = 0; start < columns; start += 64 * 8) {
        const int column = start + threadIdx.x * 8;
        float value[8] = {};
        if (column < columns) {
            const uint4 words = *reinterpret_cast<const uint4*>(x + row * columns + column);
            const __nv_bfloat16* number = reinterpret_cast<const __nv_bfloat16*>(&words);
            for (int i = 0; i < 8; ++i) value[i] = __bfloat162float(number[i]);
        }
        float most = 0.0f;
        for (float v : value) most = fmaxf(most, fabsf(v));
        most = fmaxf(most, __shfl_down_sync(0xffffffff, most, 1) * (threadIdx.x % 2 == 0));
        most = __shfl_sync(0xffffffff, most, threadIdx.x % 32 / 2 * 2);
        const __nv_fp8_e4m3 scale((most * factor) / 6.0f);
        const float inverse = scale.__x ? factor / static_cast<float>(scale) : 0.0f;
        if (column >= columns) continue;
        unsigned word = 0;
        for (int i = 7; i >= 0; --i) word = word << 4 | by_comparison(value[i] * inverse);
        *reinterpret_cast<unsigned*>(q + (row * columns + column) / 2) = word;
        if (threadIdx.x % 2 == 0) scales[(row * columns + column) / 16] = scale.__x;
    }
}

extern "C" void nvfp4_quantize(const __nv_bfloat16* x, const float* amax, unsigned char* q, unsigned char* scales,
                               int rows, int columns, cudaStream_t stream) {
    if (rows > 0) block_per_row<<<rows, 64, 0, stream>>>(x, amax, q, scales, columns);
}
