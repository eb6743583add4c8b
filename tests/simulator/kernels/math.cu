// Device math functions. Each case of a switch applies one function to every element.
#include <cuda_runtime.h>
#include <math_constants.h>

#define CASE(NUMBER, ...) \
    case NUMBER:          \
        return __VA_ARGS__

// Functions of floats. The order is that of the names in test_math.py.
__device__ float float_function(int which, float a, float b, float c) {
    float sine, cosine;
    switch (which) {
        CASE(0, __expf(a));
        CASE(1, __logf(a));
        CASE(2, __log2f(a));
        CASE(3, __powf(a, b));
        CASE(4, __sinf(a));
        CASE(5, __cosf(a));
        CASE(6, __fdividef(a, b));
        CASE(7, __frcp_rn(a));
        CASE(8, rsqrtf(a));
        CASE(9, __saturatef(a));
        CASE(10, exp10f(a));
        CASE(11, sinpif(a));
        CASE(12, cospif(a));
        case 13:
            __sincosf(a, &sine, &cosine);
            return sine + cosine;
        case 14:
            sincosf(a, &sine, &cosine);
            return sine - cosine;
            CASE(15, normcdff(a));
            CASE(16, fmaxf(a, b) - fminf(a, b));
            CASE(17, max(a, b) + min(b, c));
            CASE(18, __fmaf_rn(a, b, c));
            CASE(19, __fmaf_rz(a, b, c));
            CASE(20, __fadd_ru(a, b));
            CASE(21, __fmul_rd(a, b));
            CASE(22, __fdiv_rz(a, b));
            CASE(23, __fsqrt_ru(a));
            CASE(24, __tanf(a));
            CASE(25, norm3df(a, b, c));
            CASE(26, erff(a));
            CASE(27, tanhf(a));
            CASE(28, rcbrtf(a));
            CASE(29, a == a ? copysignf(CUDART_INF_F, a) : CUDART_NAN_F);
            CASE(30, erfcinvf(a));
            CASE(31, erfinvf(a));
            CASE(32, normcdfinvf(a));
        default:
            return isnan(a) ? 1.0f : isinf(a) ? 2.0f : isfinite(a) ? 3.0f : 4.0f;
    }
}
__global__ void floats(const float* a, const float* b, const float* c, float* out, int which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = float_function(which, a[i], b[i], c[i]);
}

__device__ unsigned int integer_function(int which, unsigned int a, unsigned int b, unsigned int c) {
    switch (which) {
        CASE(0, __clz((int)a));
        CASE(1, __popc(a));
        CASE(2, __ffs((int)a));
        CASE(3, __brev(a));
        CASE(4, __mul24((int)a, (int)b));
        CASE(5, __umul24(a, b));
        CASE(6, __mulhi((int)a, (int)b));
        CASE(7, __umulhi(a, b));
        CASE(8, __byte_perm(a, b, c));
        CASE(9, __funnelshift_l(a, b, c));
        CASE(10, __funnelshift_r(a, b, c));
        CASE(11, __funnelshift_lc(a, b, c & 63));
        CASE(12, __funnelshift_rc(a, b, c & 63));
        CASE(13, __dp4a((int)a, (int)b, (int)c));
        CASE(14, __dp4a(a, b, c));
        CASE(15, __vadd4(a, b));
        CASE(16, __vsub2(a, b));
        CASE(17, __vmaxs4(a, b));
        CASE(18, __vminu2(a, b));
        CASE(19, __vcmpeq4(a, b));
        CASE(20, __sad((int)a, (int)b, c));
        CASE(21, __hadd((int)a, (int)b));
        CASE(22, __urhadd(a, b));
        CASE(23, max((int)a, (int)b));
        CASE(24, min(a, b));
        CASE(25, max((int)a, b));  // int and unsigned: max compares both as unsigned
        CASE(26, (unsigned int)abs((int)a));
        CASE(27, __float_as_uint(__uint_as_float(a)));
        CASE(28, __dp2a_lo((int)a, (int)b, (int)c));
        default:
            return __clzll((long long)a << 20) + __popcll((unsigned long long)a << 32 | b) +
                   __ffsll((long long)b << 32);
    }
}
__global__ void integers(const int* a, const int* b, const int* c, int* out, int which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (int)integer_function(which, (unsigned)a[i], (unsigned)b[i], (unsigned)c[i]);
}

// Converts floats to integers in the four rounding modes, with saturation, and integers to floats.
__global__ void conversions(const float* x, const long long* numbers, int* as_int, long long* as_long, float* as_float,
                            int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    as_int[4 * i] = __float2int_rn(x[i]);
    as_int[4 * i + 1] = __float2int_rz(x[i]);
    as_int[4 * i + 2] = __float2int_rd(x[i]);
    as_int[4 * i + 3] = (int)__float2uint_ru(x[i]);
    as_long[2 * i] = __float2ll_rn(x[i]);
    as_long[2 * i + 1] = (long long)__float2ull_rz(x[i]);
    as_float[4 * i] = __ll2float_rn(numbers[i]);
    as_float[4 * i + 1] = __ll2float_rd(numbers[i]);
    as_float[4 * i + 2] = __int2float_ru((int)numbers[i]);
    as_float[4 * i + 3] = __ull2float_rz((unsigned long long)numbers[i]);
}

extern "C" void of_floats(const float* a, const float* b, const float* c, float* out, int which, int n,
                          cudaStream_t stream) {
    floats<<<(n + 255) / 256, 256, 0, stream>>>(a, b, c, out, which, n);
}
extern "C" void of_integers(const int* a, const int* b, const int* c, int* out, int which, int n, cudaStream_t stream) {
    integers<<<(n + 255) / 256, 256, 0, stream>>>(a, b, c, out, which, n);
}
extern "C" void convert(const float* x, const long long* numbers, int* as_int, long long* as_long, float* as_float,
                        int n, cudaStream_t stream) {
    conversions<<<(n + 255) / 256, 256, 0, stream>>>(x, numbers, as_int, as_long, as_float, n);
}
