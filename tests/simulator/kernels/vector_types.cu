// CUDA's vector types: construction and number of memory accesses. Each launcher copies an array of one type.
// The test compares the accesses of lines that are marked "counted".
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void copy(const T* in, T* out) {
    out[threadIdx.x] = in[threadIdx.x];  // counted
}

// The code uses components one by one, but one access loads or stores the whole element.
__global__ void scale_float4(const float4* in, float4* out) {
    float4 v = in[threadIdx.x];  // counted: load
    v.x *= 2;
    v.y += v.x;
    v.z = v.w;
    out[threadIdx.x] = v;  // counted: store
}
// Access to a single component is a narrow access.
__global__ void one_component(const float4* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x].y;  // counted
}
// Eight halves as a 128-bit value, in three common forms.
__global__ void halves_through_uint4(const uint4* in, uint4* out) {
    uint4 word = in[threadIdx.x];  // counted: load
    half2* pairs = reinterpret_cast<half2*>(&word);
    for (int i = 0; i < 4; ++i) pairs[i] = __hadd2(pairs[i], pairs[i]);
    out[threadIdx.x] = word;  // counted: store
}
__global__ void halves_through_union(const uint4* in, uint4* out) {
    union {
        uint4 word;
        half halves[8];
    } v;
    v.word = __ldg(&in[threadIdx.x]);  // counted: load
    for (int i = 0; i < 8; ++i) v.halves[i] = __hadd(v.halves[i], v.halves[i]);
    __stcs(&out[threadIdx.x], v.word);  // counted: store
}
template <typename T, int N>
struct alignas(sizeof(T) * N) Packed {
    T values[N];
};
__global__ void halves_through_struct(const half* in, half* out) {
    typedef Packed<half, 8> Eight;
    Eight v = reinterpret_cast<const Eight*>(in)[threadIdx.x];  // counted: load
#pragma unroll
    for (int i = 0; i < 8; ++i) v.values[i] = __hadd(v.values[i], v.values[i]);
    reinterpret_cast<Eight*>(out)[threadIdx.x] = v;  // counted: store
}

// All constructors and make functions. This only has to compile.
__constant__ float4 constant_vectors[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
struct Pair {
    float2 first;
    int4 second;
};
__device__ float2 swapped(float2 v) { return make_float2(v.y, v.x); }
__global__ void made(float* out) {
    float4 a = {1.0f, 2.0f, 3.0f, 4.0f}, b = make_float4(5, 6, 7, 8), c = {}, d = {9.0f};
    float4 e{1.0f, 2.0f, 3.0f, 4.0f};
    c = b;
    const float2 f = swapped({10.0f, 11.0f});
    int3 g = make_int3(12, 13, 14);
    Pair pair = {{15.0f, 16.0f}, {17, 18, 19, 20}};
    Pair again = pair;
    uchar4 bytes = make_uchar4(1, 2, 3, 255);
    dim3 extent(4, 5), same = extent;
    uint3 index = same;
    double2 wide = make_double2(0.5, 0.25);
    char4 small = {-1, 2, 3, 4};
    double4_16a doubles = make_double4_16a(21, 22, 23, 24);
    ulong4_32a longs = make_ulong4_32a(25, 26, 27, 28);
    float values[] = {a.x + c.y,
                      b.w,
                      d.x + d.y + d.z,
                      e.z,
                      f.x,
                      (float)g.z,
                      again.first.y,
                      (float)again.second.w,
                      (float)bytes.w,
                      (float)(index.x * index.y + index.z),
                      (float)(wide.x + wide.y),
                      (float)small.x,
                      constant_vectors[1].z,
                      (float)sizeof(double4),
                      (float)alignof(short4),
                      (float)(doubles.w + longs.z),
                      (float)alignof(long4_16a),
                      (float)alignof(ulonglong4_32a)};
    for (int i = 0; i < (int)(sizeof(values) / sizeof(values[0])); ++i) out[i] = values[i];
}

extern "C" void copy_float(const float* in, float* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_float2(const float2* in, float2* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_float4(const float4* in, float4* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_int2(const int2* in, int2* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_uint4(const int* in, int* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>((const uint4*)in, (uint4*)out);
}
extern "C" void copy_double2(const double* in, double* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>((const double2*)in, (double2*)out);
}
extern "C" void copy_half(const half* in, half* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_half2(const half2* in, half2* out, cudaStream_t s) { copy<<<1, 32, 0, s>>>(in, out); }
extern "C" void copy_bfloat162(const __nv_bfloat162* in, __nv_bfloat162* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>(in, out);
}
extern "C" void copy_uchar4(const unsigned char* in, unsigned char* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>((const uchar4*)in, (uchar4*)out);
}
extern "C" void copy_short4(const short* in, short* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>((const short4*)in, (short4*)out);
}
extern "C" void copy_double4(const double* in, double* out, cudaStream_t s) {
    copy<<<1, 32, 0, s>>>((const double4_16a*)in, (double4_16a*)out);
}
extern "C" void scale(const float4* in, float4* out, cudaStream_t s) { scale_float4<<<1, 32, 0, s>>>(in, out); }
extern "C" void component(const float4* in, float* out, cudaStream_t s) { one_component<<<1, 32, 0, s>>>(in, out); }
extern "C" void add_by_uint4(const half* in, half* out, cudaStream_t s) {
    halves_through_uint4<<<1, 32, 0, s>>>((const uint4*)in, (uint4*)out);
}
extern "C" void add_by_union(const half* in, half* out, cudaStream_t s) {
    halves_through_union<<<1, 32, 0, s>>>((const uint4*)in, (uint4*)out);
}
extern "C" void add_by_struct(const half* in, half* out, cudaStream_t s) {
    halves_through_struct<<<1, 32, 0, s>>>(in, out);
}
extern "C" void make_all(float* out, cudaStream_t s) { made<<<1, 1, 0, s>>>(out); }
