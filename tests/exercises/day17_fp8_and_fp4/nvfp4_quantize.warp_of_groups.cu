// Four lanes quantize one group, four numbers per lane. Functions of cuda_fp4.h convert the numbers to e2m1.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void four_lanes(const uint2* x, const float* amax, unsigned short* q, unsigned char* scales,
                           long long fours) {
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    union {
        uint2 vector;
        __nv_bfloat162 pair[2];
    } own = {i < fours ? x[i] : make_uint2(0, 0)};
    const float2 a = __bfloat1622float2(own.pair[0]), b = __bfloat1622float2(own.pair[1]);
    float largest = fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fmaxf(fabsf(b.x), fabsf(b.y)));
    for (int offset = 2; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_down_sync(0xffffffff, largest, offset, 4));
    }
    largest = __shfl_sync(0xffffffff, largest, 0, 4);

    const float factor = *amax == 0.0f ? 0.0f : 2688.0f / *amax;
    const unsigned char scale = __nv_cvt_float_to_fp8(__fdiv_rn(largest * factor, 6.0f), __NV_SATFINITE, __NV_E4M3);
    __nv_fp8_e4m3 as_number;
    as_number.__x = scale;
    const float decoded = static_cast<float>(as_number), inverse = scale == 0 ? 0.0f : __fdiv_rn(factor, decoded);
    if (i >= fours) return;
    const __nv_fp4x4_e2m1 out(make_float4(a.x * inverse, a.y * inverse, b.x * inverse, b.y * inverse));
    q[i] = out.__x;
    if (i % 4 == 0) scales[i / 4] = scale;
}

extern "C" void nvfp4_quantize(const __nv_bfloat16* x, const float* amax, unsigned char* q, unsigned char* scales,
                               int rows, int columns, cudaStream_t stream) {
    const long long fours = static_cast<long long>(rows) * columns / 4;
    if (fours == 0) return;
    four_lanes<<<static_cast<unsigned>((fours + 255) / 256), 256, 0, stream>>>(
        reinterpret_cast<const uint2*>(x), amax, reinterpret_cast<unsigned short*>(q), scales, fours);
}
