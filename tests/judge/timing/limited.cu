// Each kernel is limited by another unit of a GPU, and its counts can be derived by hand. n is a multiple of 256.
#include <cuda_runtime.h>
#include <cuda_fp16.h>

constexpr int threads = 256;

__global__ void copy_kernel(const float4* x, float4* out, int n) {
    int i = blockIdx.x * threads + threadIdx.x;
    if (i < n) out[i] = x[i];
}

// Reads a column of a tile with 32 columns, so all lanes of a warp read the same bank.
__global__ void conflicts_kernel(const float* x, float* out) {
    __shared__ float tile[32 * 32];
    int lane = threadIdx.x;
    for (int row = 0; row < 32; ++row) tile[row * 32 + lane] = x[row * 32 + lane];
    __syncwarp();
    float sum = 0.0f;
    for (int round = 0; round < 8; ++round)
        for (int column = 0; column < 32; ++column) sum += tile[lane * 32 + (column ^ round)];
    out[lane] = sum;
}

__global__ void sines_kernel(const float* x, float* out) {
    float value = x[threadIdx.x];
    for (int round = 0; round < 64; ++round) value = __sinf(value);
    out[threadIdx.x] = value;
}

__global__ void products_kernel(const float* x, float* out) {
    float value = x[threadIdx.x];
    for (int round = 0; round < 256; ++round) value = fmaf(value, 0.5f, 1.0f);
    out[threadIdx.x] = value;
}

__global__ void pairs_kernel(const __half2* x, __half2* out) {
    __half2 value = x[threadIdx.x];
    for (int round = 0; round < 64; ++round) value = __hfma2(value, value, value);
    out[threadIdx.x] = value;
}

// Only lane 0 of each warp computes.
__global__ void one_lane_kernel(const float* x, float* out) {
    float value = x[threadIdx.x];
    if (threadIdx.x % 32 == 0)
        for (int round = 0; round < 256; ++round) value = fmaf(value, 0.5f, 1.0f);
    out[threadIdx.x] = value;
}

__global__ void mma_kernel(const unsigned* x, float* out) {
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    unsigned a = x[threadIdx.x];
    for (int round = 0; round < 64; ++round)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, "
            "%2, %3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(a));
    out[threadIdx.x] = c0 + c1 + c2 + c3;
}

extern "C" void copy(const float* x, float* out, int n, cudaStream_t stream) {
    copy_kernel<<<n / 4 / threads, threads, 0, stream>>>(reinterpret_cast<const float4*>(x),
                                                         reinterpret_cast<float4*>(out), n / 4);
}
// The second launch reads the output of the first from the L2 cache, not from DRAM.
extern "C" void copy_twice(const float* x, float* middle, float* out, int n, cudaStream_t stream) {
    copy(x, middle, n, stream);
    copy(middle, out, n, stream);
}
extern "C" void cleared_and_read(float* zeros, float* out, int n, cudaStream_t stream) {
    cudaMemsetAsync(zeros, 0, n * sizeof(float), stream);
    copy(zeros, out, n, stream);
}
extern "C" void conflicts(const float* x, float* out, cudaStream_t stream) {
    conflicts_kernel<<<4, 32, 0, stream>>>(x, out);
}
extern "C" void sines(const float* x, float* out, cudaStream_t stream) { sines_kernel<<<4, 256, 0, stream>>>(x, out); }
extern "C" void products(const float* x, float* out, cudaStream_t stream) {
    products_kernel<<<4, 256, 0, stream>>>(x, out);
}
extern "C" void one_lane(const float* x, float* out, cudaStream_t stream) {
    one_lane_kernel<<<4, 256, 0, stream>>>(x, out);
}
extern "C" void pairs(const __half* x, __half* out, cudaStream_t stream) {
    pairs_kernel<<<4, 256, 0, stream>>>(reinterpret_cast<const __half2*>(x), reinterpret_cast<__half2*>(out));
}
extern "C" void mma(const unsigned* x, float* out, cudaStream_t stream) { mma_kernel<<<4, 128, 0, stream>>>(x, out); }
