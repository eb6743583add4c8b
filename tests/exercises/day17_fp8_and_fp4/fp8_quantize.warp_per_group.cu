// A warp quantizes one group, four numbers per lane. redux.sync finds the largest magnitude.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void warp_per_group(const __nv_bfloat16* x, unsigned char* q, float* scales, int rows, int columns) {
    const int lane = threadIdx.x % 32, groups = (columns + 127) / 128;
    const long long group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (group >= static_cast<long long>(rows) * groups) return;
    const long long row = group / groups;
    const int column = static_cast<int>(group % groups) * 128 + 4 * lane;
    const long long place = row * columns + column;

    float value[4] = {};
    if (column < columns) {
        const uint2 words = *reinterpret_cast<const uint2*>(x + place);
        const __nv_bfloat162 a = *reinterpret_cast<const __nv_bfloat162*>(&words.x);
        const __nv_bfloat162 b = *reinterpret_cast<const __nv_bfloat162*>(&words.y);
        value[0] = __low2float(a);
        value[1] = __high2float(a);
        value[2] = __low2float(b);
        value[3] = __high2float(b);
    }
    unsigned bits = __float_as_uint(1e-10f);
    for (int i = 0; i < 4; ++i) {
        if (isfinite(value[i])) bits = max(bits, __float_as_uint(fabsf(value[i])));
    }
    const float amax = __uint_as_float(__reduce_max_sync(0xffffffff, bits)), factor = 448.0f / amax;
    if (lane == 0) scales[group] = amax / 448.0f;
    if (column >= columns) return;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        out |= static_cast<unsigned>(__nv_cvt_float_to_fp8(value[i] * factor, __NV_SATFINITE, __NV_E4M3)) << (8 * i);
    }
    *reinterpret_cast<unsigned*>(q + place) = out;
}

extern "C" void fp8_quantize(const __nv_bfloat16* x, unsigned char* q, float* scales, int rows, int columns,
                             cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    const long long groups = static_cast<long long>(rows) * ((columns + 127) / 128);
    warp_per_group<<<(groups + 7) / 8, 256, 0, stream>>>(x, q, scales, rows, columns);
}
