// Faulty kernels. The tests compare the text of their findings.
#include <cuda_runtime.h>

__global__ void past_end_kernel(const float* k, float* out, int rows, int columns) {
    const int row = blockIdx.x;
    out[row * columns + threadIdx.x] = k[(row + 1) * columns + threadIdx.x];
}

extern "C" void past_end(const float* k, float* out, int rows, int columns, cudaStream_t stream) {
    past_end_kernel<<<rows, columns, 0, stream>>>(k, out, rows, columns);
}

__global__ void unordered_kernel(float* out, int count) {
    __shared__ float tile[64];
    tile[threadIdx.x] = 1;
    if (threadIdx.x < count) out[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" void unordered(float* out, int count, cudaStream_t stream) {
    unordered_kernel<<<1, 64, 0, stream>>>(out, count);
}

__global__ void checkered_kernel(float* out, int columns) {
    if ((blockIdx.x + threadIdx.x) % 2 == 0) out[blockIdx.x * columns + threadIdx.x] = 1;
}

extern "C" void checkered(float* out, int rows, int columns, cudaStream_t stream) {
    checkered_kernel<<<rows, columns, 0, stream>>>(out, columns);
}

__global__ void unrolled_kernel(const float* k, float* out, int count) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += k[count + i + threadIdx.x];
    out[threadIdx.x] = sum;
}

extern "C" void unrolled(const float* k, float* out, int count, cudaStream_t stream) {
    unrolled_kernel<<<1, 32, 0, stream>>>(k, out, count);
}

__global__ void many_lines_kernel(float* out, int count) {
    out[count + threadIdx.x] = 1;
    out[count + 32 + threadIdx.x] = 2;
    out[count + 64 + threadIdx.x] = 3;
    out[threadIdx.x] = 4;
}

extern "C" void many_lines(float* out, int count, cudaStream_t stream) {
    many_lines_kernel<<<1, 32, 0, stream>>>(out, count);
}

__global__ void writers_kernel(float* out, int columns) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column % 2) {
        out[row * columns + column] = 1;
    } else {
        atomicExch(&out[row * columns + column], 2.0f);
    }
}

extern "C" void writers(float* out, int rows, int columns, cudaStream_t stream) {
    writers_kernel<<<dim3(columns / 8, rows / 2), dim3(8, 2), 0, stream>>>(out, columns);
}

// Two warps read a value that thread 0 then overwrites.
__global__ void read_by_all_kernel(float* out) {
    __shared__ float first;
    if (threadIdx.x == 0) first = 1;
    __syncthreads();
    out[threadIdx.x] = first;
    if (threadIdx.x == 0) first = 2;
}

extern "C" void read_by_all(float* out, cudaStream_t stream) { read_by_all_kernel<<<1, 64, 0, stream>>>(out); }

// The last block adds the other blocks' results without a fence.
__device__ unsigned finished;
__global__ void no_fence_kernel(float* parts, float* out, int blocks) {
    parts[blockIdx.x] = 1;
    if (atomicAdd(&finished, 1u) + 1 < blocks) return;
    float sum = 0;
    for (int i = 0; i < blocks; ++i) sum += parts[i];
    out[0] = sum;
}

extern "C" void no_fence(float* parts, float* out, int blocks, cudaStream_t stream) {
    no_fence_kernel<<<blocks, 1, 0, stream>>>(parts, out, blocks);
}

// One line reads two shared arrays that no thread has written.
__global__ void two_unwritten_kernel(float* out) {
    __shared__ float first[64], second[64];
    out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}

extern "C" void two_unwritten(float* out, cudaStream_t stream) { two_unwritten_kernel<<<1, 64, 0, stream>>>(out); }

// Blocks take tiles from a queue, and add to the same sum. The queue's counter orders nothing, and signals nothing.
__device__ unsigned take(unsigned* counter) { return atomicAdd(counter, 1u); }

template <bool kHelper>
__global__ void queue_kernel(unsigned* counter, float* sum, unsigned tiles) {
    while (true) {
        const unsigned tile = kHelper ? take(counter) : atomicAdd(counter, 1u);
        if (tile >= tiles) return;
        sum[0] += 1;
    }
}

extern "C" void queue(unsigned* counter, float* sum, cudaStream_t stream) {
    queue_kernel<false><<<4, 1, 0, stream>>>(counter, sum, 8);
}

extern "C" void queue_by_helper(unsigned* counter, float* sum, cudaStream_t stream) {
    queue_kernel<true><<<4, 1, 0, stream>>>(counter, sum, 8);
}

// A flag without fences, set and polled by functions of the file.
__device__ void signal(int* flag) { atomicExch(flag, 1); }

__device__ void wait_for(int* flag) {
    while (atomicAdd(flag, 0) == 0) {
    }
}

__global__ void flag_kernel(int* ready, float* data, float* out) {
    if (blockIdx.x == 0) {
        data[0] = 3;
        signal(ready);  // the call that a finding names
    } else {
        wait_for(ready);
        out[0] = data[0];
    }
}

extern "C" void flag(int* ready, float* data, float* out, cudaStream_t stream) {
    flag_kernel<<<2, 1, 0, stream>>>(ready, data, out);
}
