// Conversions, arithmetic, comparisons and functions of half and bfloat16, one element per thread. Inputs and outputs
// are bit patterns (short), which preserves every NaN and every subnormal.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ T from_bits(short bits) {
    return *reinterpret_cast<T*>(&bits);
}
template <typename T>
__device__ short to_bits(T value) {
    return *reinterpret_cast<short*>(&value);
}

// Operations on up to three inputs.
enum Op { ADD, SUB, MUL, DIV, FMA, MAX, MIN, MAX_NAN, NEG, ABS, SATURATE, RELU, COUNT };

#define CASE(NUMBER, ...) \
    case NUMBER:          \
        return __VA_ARGS__

template <typename T>
__device__ T apply(int op, T a, T b, T c) {
    switch (op) {
        CASE(ADD, a + b);
        CASE(SUB, __hsub(a, b));
        CASE(MUL, a * b);
        CASE(DIV, a / b);
        CASE(FMA, __hfma(a, b, c));
        CASE(MAX, __hmax(a, b));
        CASE(MIN, __hmin(a, b));
        CASE(MAX_NAN, __hmax_nan(a, b));
        CASE(NEG, -a);
        CASE(ABS, __habs(a));
        CASE(SATURATE, __hadd_sat(a, b));
        default:
            return __hfma_relu(a, b, c);
    }
}

template <typename T>
__global__ void arithmetic(const short* a, const short* b, const short* c, short* out, int op, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = to_bits(apply(op, from_bits<T>(a[i]), from_bits<T>(b[i]), from_bits<T>(c[i])));
}

// Operations on pairs (half2, bfloat162), which are loaded as 4-byte words.
template <typename Pair>
__global__ void pairs(const Pair* a, const Pair* b, const Pair* c, Pair* sums, Pair* fused, Pair* larger,
                      int* relations, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair x = a[i], y = b[i];
    sums[i] = x + y;
    fused[i] = __hfma2(x, y, c[i]);
    larger[i] = __hmax2(x, y);
    relations[i] = __heq2_mask(x, y) & 1;
    relations[i] |= (__hblt2(x, y) ? 2 : 0) | (__hbge2(x, y) ? 4 : 0) | (x == y ? 8 : 0) | (x != y ? 16 : 0);
    relations[i] |= (__hlt(x.x, y.x) ? 32 : 0) | (__hneu(x.x, y.x) ? 64 : 0) | (__hisnan(x.x) ? 128 : 0);
    relations[i] |= (__hne(x.x, y.x) ? 256 : 0) | (__hgtu(x.x, y.x) ? 512 : 0) | (x.x == y.x ? 1024 : 0);
}

template <typename T>
__global__ void functions(const short* a, short* out, int which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T x = from_bits<T>(a[i]);
    T y = which == 0   ? hexp(x)
          : which == 1 ? hlog(x)
          : which == 2 ? hsqrt(x)
          : which == 3 ? hrsqrt(x)
          : which == 4 ? hrcp(x)
          : which == 5 ? hexp2(x)
          : which == 6 ? hfloor(x)
          : which == 7 ? hrint(x)
          : which == 8 ? htanh(x)
                       : hsin(x);
    out[i] = to_bits(y);
}

__global__ void half_conversions(const short* bits, float* floats, int* rounded_down, int* truncated,
                                 short* low_of_pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half h = __ushort_as_half((unsigned short)bits[i]);
    floats[i] = __half2float(h);
    rounded_down[i] = __half2int_rd(h);
    truncated[i] = (int)h;
    half2 pair = __half2half2(h);
    low_of_pair[i] = __half_as_short(__low2half(pair));
}
__global__ void bfloat16_conversions(const short* bits, float* floats, int* rounded_down, int* truncated,
                                     short* high_of_pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 h = __ushort_as_bfloat16((unsigned short)bits[i]);
    floats[i] = __bfloat162float(h);
    rounded_down[i] = __bfloat162int_rd(h);
    truncated[i] = (int)h;
    high_of_pair[i] = __bfloat16_as_short(__high2bfloat16(__bfloat162bfloat162(h)));
}

__global__ void from_floats(const float* x, short* half_nearest, short* half_zero, short* half_up, short* half_pair,
                            short* bfloat16_nearest, short* bfloat16_down, short* bfloat16_pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half_nearest[i] = __half_as_short(__float2half(x[i]));
    half_zero[i] = __half_as_short(__float2half_rz(x[i]));
    half_up[i] = __half_as_short(__float2half_ru(x[i]));
    half_pair[i] = __half_as_short(__high2half(__floats2half2_rn(0.0f, x[i])));
    bfloat16_nearest[i] = __bfloat16_as_short(__float2bfloat16(x[i]));
    bfloat16_down[i] = __bfloat16_as_short(__float2bfloat16_rd(x[i]));
    bfloat16_pair[i] = __bfloat16_as_short(__low2bfloat16(__floats2bfloat162_rn(x[i], 0.0f)));
}

__global__ void from_others(const double* doubles, const long long* integers, half* halves, __nv_bfloat16* bfloats,
                            half* from_integer, __nv_bfloat16* bfloat_from_integer, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    halves[i] = __double2half(doubles[i]);
    bfloats[i] = doubles[i];
    from_integer[i] = integers[i];
    bfloat_from_integer[i] = __ll2bfloat16_rn(integers[i]);
}

// Computes a warp's sum with shuffles of half2, then adds it with atomics.
__global__ void warp_sum(const half2* x, half2* out, half* total, __nv_bfloat16* bfloat_total) {
    half2 sum = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2) sum = __hadd2(sum, __shfl_xor_sync(0xffffffff, sum, distance));
    out[threadIdx.x] = sum;
    atomicAdd(total, __float2half(1.0f));
    atomicAdd(bfloat_total, __float2bfloat16(0.5f));
    half first = __shfl_sync(0xffffffff, __low2half(x[threadIdx.x]), 5);
    if (threadIdx.x == 0) out[32] = __halves2half2(first, __ldg(&total[1]));
}

static int blocks(int n) { return (n + 255) / 256; }

extern "C" void arithmetic_f16(const short* a, const short* b, const short* c, short* out, int op, int n,
                               cudaStream_t s) {
    arithmetic<half><<<blocks(n), 256, 0, s>>>(a, b, c, out, op, n);
}
extern "C" void arithmetic_bf16(const short* a, const short* b, const short* c, short* out, int op, int n,
                                cudaStream_t s) {
    arithmetic<__nv_bfloat16><<<blocks(n), 256, 0, s>>>(a, b, c, out, op, n);
}
extern "C" void pairs_f16(const half2* a, const half2* b, const half2* c, half2* sums, half2* fused, half2* larger,
                          int* relations, int n, cudaStream_t s) {
    pairs<<<blocks(n), 256, 0, s>>>(a, b, c, sums, fused, larger, relations, n);
}
extern "C" void pairs_bf16(const __nv_bfloat162* a, const __nv_bfloat162* b, const __nv_bfloat162* c,
                           __nv_bfloat162* sums, __nv_bfloat162* fused, __nv_bfloat162* larger, int* relations, int n,
                           cudaStream_t s) {
    pairs<<<blocks(n), 256, 0, s>>>(a, b, c, sums, fused, larger, relations, n);
}
extern "C" void functions_f16(const short* a, short* out, int which, int n, cudaStream_t s) {
    functions<half><<<blocks(n), 256, 0, s>>>(a, out, which, n);
}
extern "C" void functions_bf16(const short* a, short* out, int which, int n, cudaStream_t s) {
    functions<__nv_bfloat16><<<blocks(n), 256, 0, s>>>(a, out, which, n);
}
extern "C" void to_numbers_f16(const short* bits, float* floats, int* down, int* truncated, short* pair, int n,
                               cudaStream_t s) {
    half_conversions<<<blocks(n), 256, 0, s>>>(bits, floats, down, truncated, pair, n);
}
extern "C" void to_numbers_bf16(const short* bits, float* floats, int* down, int* truncated, short* pair, int n,
                                cudaStream_t s) {
    bfloat16_conversions<<<blocks(n), 256, 0, s>>>(bits, floats, down, truncated, pair, n);
}
extern "C" void round_floats(const float* x, short* half_nearest, short* half_zero, short* half_up, short* half_pair,
                             short* bfloat16_nearest, short* bfloat16_down, short* bfloat16_pair, int n,
                             cudaStream_t s) {
    from_floats<<<blocks(n), 256, 0, s>>>(x, half_nearest, half_zero, half_up, half_pair, bfloat16_nearest,
                                          bfloat16_down, bfloat16_pair, n);
}
extern "C" void round_others(const double* doubles, const long long* integers, half* halves, __nv_bfloat16* bfloats,
                             half* from_integer, __nv_bfloat16* bfloat_from_integer, int n, cudaStream_t s) {
    from_others<<<blocks(n), 256, 0, s>>>(doubles, integers, halves, bfloats, from_integer, bfloat_from_integer, n);
}
extern "C" void sum_of_warp(const half* x, half* out, half* total, __nv_bfloat16* bfloat_total, cudaStream_t s) {
    warp_sum<<<1, 32, 0, s>>>((const half2*)x, (half2*)out, total, bfloat_total);
}
