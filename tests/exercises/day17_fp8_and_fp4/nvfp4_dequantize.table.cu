// A block converts one row. Each lane's register holds one value of a table. Lanes look up values with shuffles.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void __launch_bounds__(128) table_in_lanes(const unsigned char* q, const unsigned char* scales,
                                                      const float* amax, __nv_bfloat16* x, int columns) {
    const size_t row = blockIdx.x;
    const int pattern = threadIdx.x % 16, exponent = pattern >> 1 & 3, mantissa = pattern & 1;
    const float size = exponent == 0 ? 0.5f * mantissa : ldexpf(1.0f + 0.5f * mantissa, exponent - 1);
    const float number = pattern & 8 ? -size : size;
    const float whole = *amax / 2688.0f;
    for (int start = 0; start < columns; start += 128 * 4) {
        const int column = start + 4 * threadIdx.x;
        const size_t place = row * columns + column;
        const unsigned two = column < columns ? *reinterpret_cast<const unsigned short*>(q + place / 2) : 0;
        __nv_fp8_e4m3 scale;
        scale.__x = column < columns ? scales[place / 16] : 0;
        float value[4];
        for (int i = 0; i < 4; ++i) {
            value[i] = __shfl_sync(0xffffffff, number, two >> (4 * i) & 15) * static_cast<float>(scale) * whole;
        }
        if (column >= columns) continue;
        const __nv_bfloat162 a = __floats2bfloat162_rn(value[0], value[1]),
                             b = __floats2bfloat162_rn(value[2], value[3]);
        *reinterpret_cast<uint2*>(x + place) =
            make_uint2(*reinterpret_cast<const unsigned*>(&a), *reinterpret_cast<const unsigned*>(&b));
    }
}

extern "C" void nvfp4_dequantize(const unsigned char* q, const unsigned char* scales, const float* amax,
                                 __nv_bfloat16* x, int rows, int columns, cudaStream_t stream) {
    if (rows > 0 && columns > 0) table_in_lanes<<<rows, 128, 0, stream>>>(q, scales, amax, x, columns);
}
