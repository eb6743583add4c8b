// Structures passed to functions or returned by value: their reads and writes must be checked and counted.
#include <cuda_runtime.h>

struct Three {
    float a, b, c;
};
struct Eight {
    float v[8];
};

__device__ float waves(Three p) { return sinf(p.a) + cosf(p.b) + p.c; }
__device__ __noinline__ float sum(Three p) { return p.a + p.b + p.c; }
__device__ float descend(Three p, int n) { return n ? descend(p, n - 1) + p.c : p.a + p.b; }
template <int N>
__device__ float scaled(Eight p) {
    float total = 0;
    for (int i = 0; i < 8; ++i) total += p.v[i] * N;
    return total;
}
__device__ Three all_three(float x) { return {x, x, x}; }
__device__ __noinline__ Eight all_eight(float x) {
    Eight made;
    for (int i = 0; i < 8; ++i) made.v[i] = x;
    return made;
}

// One thread reads one structure of at most 32 bytes.
__global__ void waves_kernel(const Three* x, float* out) {
    out[threadIdx.x] = waves(x[threadIdx.x]) + waves(x[blockDim.x - 1 - threadIdx.x]);
}
__global__ void sum_kernel(const Three* x, float* out) { out[threadIdx.x] = sum(x[threadIdx.x]); }
__global__ void descend_kernel(const Three* x, float* out) { out[threadIdx.x] = descend(x[threadIdx.x], 3); }
__global__ void scaled_kernel(const Eight* x, float* out) { out[threadIdx.x] = scaled<3>(x[threadIdx.x]); }
__global__ void past_kernel(const Eight* x, float* out) { out[threadIdx.x] = scaled<1>(x[threadIdx.x + 1]); }
__global__ void all_three_kernel(Three* out) { out[threadIdx.x] = all_three(1); }
__global__ void all_eight_kernel(Eight* out) { out[threadIdx.x] = all_eight(1); }

extern "C" void read_waves(const float* x, float* out, int n, cudaStream_t stream) {
    waves_kernel<<<1, n / 8, 0, stream>>>((const Three*)x, out);
}
extern "C" void read_sum(const float* x, float* out, int n, cudaStream_t stream) {
    sum_kernel<<<1, n / 8, 0, stream>>>((const Three*)x, out);
}
extern "C" void read_descend(const float* x, float* out, int n, cudaStream_t stream) {
    descend_kernel<<<1, n / 8, 0, stream>>>((const Three*)x, out);
}
extern "C" void read_scaled(const float* x, float* out, int n, cudaStream_t stream) {
    scaled_kernel<<<1, n / 8, 0, stream>>>((const Eight*)x, out);
}
extern "C" void write_all_three(const float* x, float* out, int n, cudaStream_t stream) {
    all_three_kernel<<<1, n / 8, 0, stream>>>((Three*)out);
}
extern "C" void write_all_eight(const float* x, float* out, int n, cudaStream_t stream) {
    all_eight_kernel<<<1, n / 8, 0, stream>>>((Eight*)out);
}
extern "C" void read_past_the_end(const float* x, float* out, int n, cudaStream_t stream) {
    past_kernel<<<1, n / 8, 0, stream>>>((const Eight*)x, out);
}

// An aligned structure is read in one request of the warp; otherwise nvcc reads member by member.
struct Two {
    float a, b;
};
struct alignas(8) Pair {
    float a, b;
};
struct alignas(16) Pack {
    float v[4];
};
__global__ void three_apart_kernel(const Three* x, float* out) {
    const Three p = x[threadIdx.x];
    out[threadIdx.x] = p.a + p.b * p.c;
}
__global__ void two_apart_kernel(const Two* x, float* out) {
    const Two p = x[threadIdx.x];
    out[threadIdx.x] = p.a + p.b;
}
__global__ void pair_kernel(const Pair* x, float* out) {
    const Pair p = x[threadIdx.x];
    out[threadIdx.x] = p.a + p.b;
}
__global__ void pack_kernel(const Pack* x, float* out) {
    const Pack p = x[threadIdx.x];
    out[threadIdx.x] = p.v[0] + p.v[1] + p.v[2] + p.v[3];
}
extern "C" void three_apart(const float* x, float* out, int n, cudaStream_t stream) {
    three_apart_kernel<<<1, n / 8, 0, stream>>>((const Three*)x, out);
}
extern "C" void two_apart(const float* x, float* out, int n, cudaStream_t stream) {
    two_apart_kernel<<<1, n / 8, 0, stream>>>((const Two*)x, out);
}
extern "C" void pair(const float* x, float* out, int n, cudaStream_t stream) {
    pair_kernel<<<1, n / 8, 0, stream>>>((const Pair*)x, out);
}
extern "C" void pack(const float* x, float* out, int n, cudaStream_t stream) {
    pack_kernel<<<1, n / 8, 0, stream>>>((const Pack*)x, out);
}
