// Every atomic operation: each thread applies it to one cell with its own operand and stores the returned value.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__device__ T operand(int i) {
    return (T)(i * 37 % 101) - (T)20;
}

template <typename T>
__global__ void common_kernel(T* cells, T* old) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const T value = operand<T>(i);
    old[i] = atomicAdd(&cells[0], value);
    atomicExch(&cells[1], value);
}

template <typename T>
__global__ void integer_kernel(T* cells) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const T value = operand<T>(i);
    atomicMin(&cells[2], value);
    atomicMax(&cells[3], value);
    atomicAnd(&cells[4], value | (T)8);
    atomicOr(&cells[5], value);
    atomicXor(&cells[6], value);
    T seen = cells[7], assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&cells[7], assumed, (T)(assumed + 3));
    } while (seen != assumed);
    atomicMax_block(&cells[8], value);
    atomicAdd_system(&cells[9], (T)1);
}

template <typename T>
__global__ void narrow_kernel(T* cells) {
    atomicSub(&cells[10], (T)2);
}

__global__ void wrap_kernel(unsigned* cells) {
    atomicInc(&cells[11], 10);
    atomicDec(&cells[12], 10);
}

__global__ void signed_long_kernel(long long* cells) {
    const long long value = operand<long long>(blockIdx.x * blockDim.x + threadIdx.x) << 33;
    atomicMin(&cells[0], value);
    atomicMax(&cells[1], value);
}

extern "C" void atomics_int(int* cells, int* old, int blocks, int threads, cudaStream_t stream) {
    common_kernel<<<blocks, threads, 0, stream>>>(cells, old);
    integer_kernel<<<blocks, threads, 0, stream>>>(cells);
    narrow_kernel<<<blocks, threads, 0, stream>>>(cells);
}

extern "C" void atomics_unsigned(int* cells, int* old, int blocks, int threads, cudaStream_t stream) {
    common_kernel<<<blocks, threads, 0, stream>>>((unsigned*)cells, (unsigned*)old);
    integer_kernel<<<blocks, threads, 0, stream>>>((unsigned*)cells);
    narrow_kernel<<<blocks, threads, 0, stream>>>((unsigned*)cells);
    wrap_kernel<<<blocks, threads, 0, stream>>>((unsigned*)cells);
}

extern "C" void atomics_long(long long* cells, long long* old, int blocks, int threads, cudaStream_t stream) {
    common_kernel<<<blocks, threads, 0, stream>>>((unsigned long long*)cells, (unsigned long long*)old);
    integer_kernel<<<blocks, threads, 0, stream>>>((unsigned long long*)cells);
}

extern "C" void atomics_signed_long(long long* cells, int blocks, int threads, cudaStream_t stream) {
    signed_long_kernel<<<blocks, threads, 0, stream>>>(cells);
}

extern "C" void atomics_float(float* cells, float* old, int blocks, int threads, cudaStream_t stream) {
    common_kernel<<<blocks, threads, 0, stream>>>(cells, old);
}

__global__ void double_kernel(double* cells) {
    atomicAdd(&cells[0], operand<double>(blockIdx.x * blockDim.x + threadIdx.x));
}

extern "C" void atomics_double(double* cells, int blocks, int threads, cudaStream_t stream) {
    double_kernel<<<blocks, threads, 0, stream>>>(cells);
}

// Adds half and bfloat16 numbers, single and in pairs. The third cell counts past 2048 (half) or 256 (bfloat16), from
// where adding 1 is rounded.
__global__ void half_kernel(__half* cells) {
    atomicAdd(&cells[0], __float2half(0.25f));
    atomicAdd(&cells[1], __float2half(1.0f));
    atomicAdd((__half2*)&cells[2], __floats2half2_rn(1.0f, -0.5f));
}

__global__ void bfloat16_kernel(__nv_bfloat16* cells) {
    atomicAdd(&cells[0], __float2bfloat16(0.25f));
    atomicAdd(&cells[1], __float2bfloat16(1.0f));
    atomicAdd((__nv_bfloat162*)&cells[2], __floats2bfloat162_rn(1.0f, -0.5f));
}

extern "C" void atomics_half(__half* cells, int blocks, int threads, cudaStream_t stream) {
    half_kernel<<<blocks, threads, 0, stream>>>(cells);
}

extern "C" void atomics_bfloat16(__nv_bfloat16* cells, int blocks, int threads, cudaStream_t stream) {
    bfloat16_kernel<<<blocks, threads, 0, stream>>>(cells);
}

__global__ void short_kernel(unsigned short* cells) {
    unsigned short seen = cells[1], assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&cells[1], assumed, (unsigned short)(assumed + 1));
    } while (seen != assumed);
}

extern "C" void atomics_short(int* cells, int blocks, int threads, cudaStream_t stream) {
    short_kernel<<<blocks, threads, 0, stream>>>((unsigned short*)cells);
}

// A histogram with atomics in shared memory.
__global__ void histogram_kernel(const int* x, int* bins, int n) {
    __shared__ int mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&mine[x[i] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) bins[threadIdx.x] = mine[threadIdx.x];
}

extern "C" void histogram(const int* x, int* bins, int n, cudaStream_t stream) {
    histogram_kernel<<<1, 256, 0, stream>>>(x, bins, n);
}
