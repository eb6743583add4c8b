// Expressions that nvcc accepts, one per line: conversions, overloads, initializations of vector types and halves. The
// simulator's headers must also accept them. test_language.py has expressions that both must reject.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>
#include <math_constants.h>
#include <type_traits>

__global__ void expressions(float* p, const float4* p2, half* h, half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, int i,
                            unsigned u, long l, unsigned long ul, long long ll, float x, float y, double d, char c,
                            size_t sz, float4 f4) {
    (void)(max(sz, (size_t)3));
    (void)(max(x, 0.0));
    (void)(min(u, i));
    (void)(max(c, 3));
    (void)(abs(ll));
    (void)(rsqrtf(i));
    (void)(__expf(d));
    (void)(__expf(i));
    (void)(sincosf(x, &x, &y));
    (void)(exp10(x));
    (void)(fmaxf(x, d));
    (void)(pow(x, 2));
    (void)(powf(x, 2));
    (void)(floor(x));
    (void)(isnan(d));
    (void)(__ldg(&p[3]));
    (void)(__ldg(p2));
    (void)(__ldg(h));
    (void)(h2[0] + h2[1]);
    (void)(h2[0].x * h[0]);
    (void)(__half2float(h[0]) + x);
    (void)(__float2half(d));
    (void)(__float2half(i));
    h[0] = x;
    h[0] = d;
    h[0] = i;
    h[0] = u;
    h[0] = ll;
    (void)(h[0] == h[1]);
    (void)(h[0] ? 1 : 2);
    (void)(-h[0]);
    h[0] += x;
    h[0] *= 2;
    x += __half2float(h[0]);
    x = h[0];
    x = (float)h[0] * 2;
    i = h[0];
    (void)(static_cast<float>(h[0]));
    (void)(float(h[0]) + float(b[0]));
    b[0] = x;
    (void)(b[0] + b[1]);
    x = b[0];
    (void)(__hmax(h[0], h[1]));
    (void)(__hmax(h[0], 0));
    (void)(__hgt(h[0], h[1]));
    (void)(__hfma(h[0], h[1], h[2]));
    (void)(make_float4(i, u, d, x));
    (void)(make_float2(1, 2));
    (void)(make_int4(1, 2, 3, x));
    (void)(float4{1.f, 2.f, 3.f, 4.f});
    f4 = {1, 2, 3, 4};
    (void)(half2(h[0], h[1]));
    (void)(__half2{h[0], h[1]});
    (void)(half2(x, y));
    (void)(__floats2half2_rn(x, y));
    (void)(__half22float2(h2[0]).x);
    (void)(atomicAdd(&p[0], 1));
    (void)(atomicAdd(&p[0], d));
    (void)(atomicAdd(h, h[0]));
    (void)(atomicAdd(h2, h2[0]));
    (void)(atomicAdd(b, b[0]));
    (void)(atomicMax(&i, 3));
    (void)(__shfl_xor_sync(~0u, h[0], 1));
    (void)(__shfl_xor_sync(~0u, h2[0], 1));
    (void)(__shfl_xor_sync(~0u, b[0], 1));
    (void)(__shfl_xor_sync(~0u, c, 1));
    (void)(__shfl_xor_sync(~0u, d, 1));
    (void)(__shfl_xor_sync(~0u, sz, 1));
    (void)(__clz(u));
    (void)(__popc(i));
    (void)(__ffs(u));
    (void)(__byte_perm(i, u, 3));
    (void)(__float_as_int(x));
    (void)(__int_as_float(u));
    (void)(warpSize);
    (void)(std::is_same<half, __half>::value);
    (void)(sizeof(half2));
    (void)(INFINITY);
    (void)(-INFINITY);
    (void)(NAN);
    (void)(FLT_MAX);
    (void)(CUDART_INF_F);
    (void)(fmaxf(h[0], h[1]));
    (void)(hexp(h[0]));
    (void)(expf(h[0]));
    (void)(__expf(h[0]));
    (void)(sqrtf(h[0]));
    (void)(fminf(1, x));
    (void)(fmin(x, y));
    (void)(signbit(x));
    (void)(__saturatef(i));
    (void)(__fmul_rn(x, i));
    (void)(__fdividef(x, i));
    (void)(copysign(x, y));
    (void)(round(x));
    (void)(lround(x));
    (void)(llrintf(x));
    (void)(__hadd2(h2[0], h2[1]));
    (void)(__hfma2(h2[0], h2[1], h2[2]));
    (void)(h2[0].x);
    (void)(__low2float(h2[0]));
    (void)(__low2half(h2[0]));
    (void)(__halves2half2(h[0], h[1]));
    (void)(__ushort_as_half(3));
    (void)(__half_as_ushort(h[0]));
    (void)(half(3));
    (void)(half(3.0));
    (void)((half)x);
    (void)(static_cast<half>(x));
    (void)(static_cast<__nv_bfloat16>(x));
    (void)(__float2bfloat16(x));
    (void)(__bfloat162float(b[0]));
    (void)(__bfloat1622float2(b2[0]).x);
    (void)(__hadd(b[0], b[1]));
    (void)(__hmul2(b2[0], b2[1]));
    (void)(b2[0] + b2[0]);
    {
        half x1 = 0;
    }
    {
        half x1 = {};
    }
    {
        half x1{1.0f};
    }
    {
        half x1[4] = {0};
    }
    {
        half x1[2] = {0.f, 1.f};
    }
    {
        half2 x1 = {h[0], h[1]};
    }
    {
        half2 x1{0.f, 0.f};
    }
    {
        float4 x1[2] = {};
    }
    {
        float2 x1 = {x};
    }
    {
        const float4 x1 = f4;
    }
    {
        float4 x1(f4);
    }
    {
        auto x1 = f4;
        x1.x = 2;
    }
    {
        float4* x1 = reinterpret_cast<float4*>(&p[0]);
        f4 = x1[0];
    }
    {
        float4 x1;
        x1 = *(float4*)p;
    }
    {
        float3 x1 = {1.f, 2.f, 3.f};
    }
    {
        float3 x1 = make_float3(1, 2, 3);
    }
    {
        uint3 x1 = threadIdx;
    }
    {
        dim3 x1 = blockDim;
    }
    {
        dim3 x1 = threadIdx;
    }
    {
        int x1 = threadIdx.x + blockIdx.x * blockDim.x;
    }
    {
        uint4 x1 = {0, 0, 0, 0};
    }
    {
        uint4 x1 = {i, i, i, i};
    }
    {
        int2 x1 = {1, 2};
    }
    {
        volatile float* x1 = p;
        x = x1[0];
    }
    {
        volatile half* x1 = h;
        x = __half2float(x1[0]);
    }
    {
        union {
            float4 v;
            float f[4];
        } x1;
        x1.v = f4;
    }
    {
        struct S {
            half a;
            half2 b;
            float4 c;
        } x1 = {};
    }
    {
        struct S {
            half a = 0.f;
        } x1;
    }
    {
        constexpr float x1 = INFINITY;
    }
    {
        __shared__ half x1[32];
    }
    {
        __shared__ float4 x1[32];
    }
    {
        __shared__ half2 x1[32][33];
    }
    {
        __shared__ __align__(16) unsigned char x1[32];
    }
}

extern "C" void nothing(cudaStream_t) {}
