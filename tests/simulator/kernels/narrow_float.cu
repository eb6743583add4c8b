// All conversions from and to floating-point formats of 8, 6 and 4 bits, one element per thread.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

// format: 0 e4m3, 1 e5m2, 2 e8m0, 3 e2m3, 4 e3m2, 5 e2m1
template <typename Value>
__device__ void decode_as(unsigned char bits, float* f32, double* f64, __half* f16, __nv_bfloat16* bf16, int* i32) {
    Value value;
    value.__x = bits;
    *f32 = static_cast<float>(value);
    *f64 = static_cast<double>(value);
    *f16 = static_cast<__half>(value);
    *bf16 = static_cast<__nv_bfloat16>(value);
    *i32 = static_cast<int>(value);
}

__global__ void decode_kernel(int format, const unsigned char* bits, float* f32, double* f64, __half* f16,
                              __nv_bfloat16* bf16, int* i32, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (format == 0) decode_as<__nv_fp8_e4m3>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
    if (format == 1) decode_as<__nv_fp8_e5m2>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
    if (format == 2) decode_as<__nv_fp8_e8m0>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
    if (format == 3) decode_as<__nv_fp6_e2m3>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
    if (format == 4) decode_as<__nv_fp6_e3m2>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
    if (format == 5) decode_as<__nv_fp4_e2m1>(bits[i], f32 + i, f64 + i, f16 + i, bf16 + i, i32 + i);
}

// saturates: 0 or 1. rounding: 0 to nearest, 1 toward zero, 2 away from zero. Formats without saturation or without
// these roundings ignore the parameters.
__global__ void encode_kernel(int format, int saturates, int rounding, const float* f32, const double* f64,
                              unsigned char* from_f32, unsigned char* from_f64, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_saturation_t saturate = saturates ? __NV_SATFINITE : __NV_NOSAT;
    const cudaRoundMode mode = rounding == 0 ? cudaRoundNearest : rounding == 1 ? cudaRoundZero : cudaRoundPosInf;
    if (format < 2) {
        const __nv_fp8_interpretation_t kind = format == 0 ? __NV_E4M3 : __NV_E5M2;
        from_f32[i] = __nv_cvt_float_to_fp8(f32[i], saturate, kind);
        from_f64[i] = __nv_cvt_double_to_fp8(f64[i], saturate, kind);
    } else if (format == 2) {
        from_f32[i] = __nv_cvt_float_to_e8m0(f32[i], saturate, mode);
        from_f64[i] = __nv_cvt_double_to_e8m0(f64[i], saturate, mode);
    } else if (format < 5) {
        const __nv_fp6_interpretation_t kind = format == 3 ? __NV_E2M3 : __NV_E3M2;
        from_f32[i] = __nv_cvt_float_to_fp6(f32[i], kind, mode);
        from_f64[i] = __nv_cvt_double_to_fp6(f64[i], kind, mode);
    } else {
        from_f32[i] = __nv_cvt_float_to_fp4(f32[i], __NV_E2M1, mode);
        from_f64[i] = __nv_cvt_double_to_fp4(f64[i], __NV_E2M1, mode);
    }
}

// Converts four values to a narrow format and back: in pairs from half2, and all four from float4.
template <typename Two, typename Four>
__device__ void through(float4 x, unsigned* two, unsigned* four, float4* back) {
    const Two low(__floats2half2_rn(x.x, x.y)), high(__floats2half2_rn(x.z, x.w));
    const Four all(x);
    const float2 first = static_cast<float2>(low), second = static_cast<float2>(high);
    two[0] = low.__x;
    two[1] = high.__x;
    *four = all.__x;
    back[0] = static_cast<float4>(all);
    back[1] = make_float4(first.x, first.y, second.x, second.y);
}

__global__ void vectors_kernel(int format, const float4* x, unsigned* two, unsigned* four, float4* back, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (format == 0) through<__nv_fp8x2_e4m3, __nv_fp8x4_e4m3>(x[i], two + 2 * i, four + i, back + 2 * i);
    if (format == 1) through<__nv_fp8x2_e5m2, __nv_fp8x4_e5m2>(x[i], two + 2 * i, four + i, back + 2 * i);
    if (format == 2) through<__nv_fp8x2_e8m0, __nv_fp8x4_e8m0>(x[i], two + 2 * i, four + i, back + 2 * i);
    if (format == 3) through<__nv_fp6x2_e2m3, __nv_fp6x4_e2m3>(x[i], two + 2 * i, four + i, back + 2 * i);
    if (format == 4) through<__nv_fp6x2_e3m2, __nv_fp6x4_e3m2>(x[i], two + 2 * i, four + i, back + 2 * i);
    if (format == 5) through<__nv_fp4x2_e2m1, __nv_fp4x4_e2m1>(x[i], two + 2 * i, four + i, back + 2 * i);
}

// Executes the PTX instructions that convert pairs of floats and halves to e4m3 and e5m2, and back. out: [8, n].
__global__ void instructions_kernel(const float2* x, unsigned* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned short to[5];
    unsigned halves, from[3];
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(x[i].y), "f"(x[i].x));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(to[0]) : "f"(x[i].y), "f"(x[i].x));
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(to[1]) : "f"(x[i].y), "f"(x[i].x));
    asm("cvt.rn.satfinite.relu.e4m3x2.f32 %0, %1, %2;" : "=h"(to[2]) : "f"(x[i].y), "f"(x[i].x));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(to[3]) : "r"(halves));
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(to[4]) : "r"(halves));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(from[0]) : "h"(to[0]));
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(from[1]) : "h"(to[1]));
    asm("cvt.rn.relu.f16x2.e4m3x2 %0, %1;" : "=r"(from[2]) : "h"(to[0]));
    for (int k = 0; k < 5; ++k) out[k * n + i] = to[k];
    for (int k = 0; k < 3; ++k) out[(5 + k) * n + i] = from[k];
}

extern "C" void decode(int format, const unsigned char* bits, float* f32, double* f64, __half* f16, __nv_bfloat16* bf16,
                       int* i32, int n, cudaStream_t stream) {
    decode_kernel<<<(n + 127) / 128, 128, 0, stream>>>(format, bits, f32, f64, f16, bf16, i32, n);
}
extern "C" void encode(int format, int saturates, int rounding, const float* f32, const double* f64,
                       unsigned char* from_f32, unsigned char* from_f64, int n, cudaStream_t stream) {
    encode_kernel<<<(n + 127) / 128, 128, 0, stream>>>(format, saturates, rounding, f32, f64, from_f32, from_f64, n);
}
extern "C" void vectors(int format, const float* x, unsigned* two, unsigned* four, float* back, int n,
                        cudaStream_t stream) {
    vectors_kernel<<<(n + 127) / 128, 128, 0, stream>>>(format, reinterpret_cast<const float4*>(x), two, four,
                                                        reinterpret_cast<float4*>(back), n);
}
extern "C" void instructions(const float* x, unsigned* out, int n, cudaStream_t stream) {
    instructions_kernel<<<(n + 127) / 128, 128, 0, stream>>>(reinterpret_cast<const float2*>(x), out, n);
}
