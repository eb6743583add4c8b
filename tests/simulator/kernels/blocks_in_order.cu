// In each launch, blocks depend on each other. Results must be the same as if blocks ran one after another.
#include <cassert>
#include <cstdio>

#include <cuda_runtime.h>

// Every block reads all of x, in several rounds, and writes its own part of out.
__global__ void apart_kernel(const float* x, float* out, int n) {
    __shared__ float part[64];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        part[threadIdx.x] = x[i];
        __syncthreads();
        sum += part[63 - threadIdx.x] * x[n - 1 - i] + x[blockIdx.x % n];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" void apart(const float* x, float* out, int blocks, int n, cudaStream_t stream) {
    apart_kernel<<<blocks, 64, 0, stream>>>(x, out, n);
}

// Blocks add floats atomically, so the rounding depends on the order. `from` is the first block that adds.
__global__ void adds_kernel(float* out, int from) {
    float mine = 1.0f / (1 + blockIdx.x);
    for (int i = 0; i < 100; ++i) mine = mine * 0.999f + 0.001f;
    if (blockIdx.x >= from) atomicAdd(out + threadIdx.x % 2, mine);
}
extern "C" void adds(float* out, int blocks, int from, cudaStream_t stream) {
    adds_kernel<<<blocks, 32, 0, stream>>>(out, from);
}

__global__ void prints_kernel(int* out, int from) {
    out[blockIdx.x] = blockIdx.x;
    if (blockIdx.x >= from && threadIdx.x == 0) printf("block %d\n", blockIdx.x);
}
extern "C" void prints(int* out, int blocks, int from, cudaStream_t stream) {
    prints_kernel<<<blocks, 32, 0, stream>>>(out, from);
}

// Each block takes a lock and updates a number. The final number depends on the order of the blocks.
__device__ int lock = 0;
__global__ void locks_kernel(int* out, int from) {
    if (threadIdx.x || blockIdx.x < from) return;
    while (atomicCAS(&lock, 0, 1)) {
    }
    __threadfence();
    volatile int* product = out;
    *product = *product * 3 + (int)blockIdx.x;
    __threadfence();
    atomicExch(&lock, 0);
}
extern "C" void locks(int* out, int blocks, int from, cudaStream_t stream) {
    locks_kernel<<<blocks, 32, 0, stream>>>(out, from);
}

// The last block to arrive adds the outputs of all blocks.
__device__ unsigned arrivals = 0;
__global__ void last_block_kernel(float* parts, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = 1.0f / (1 + blockIdx.x);
        __threadfence();
        last = atomicInc(&arrivals, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x) return;
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += ((volatile float*)parts)[i];
    *out = sum + blockIdx.x;
}
extern "C" void last_block(float* parts, float* out, int blocks, cudaStream_t stream) {
    last_block_kernel<<<blocks, 32, 0, stream>>>(parts, out);
}

// A grid-wide barrier made of atomics: earlier blocks wait for later ones. All blocks are resident.
__device__ unsigned reached = 0;
__global__ void meeting_kernel(int* out, int from) {
    if (threadIdx.x || blockIdx.x < from) return;
    atomicAdd(&reached, 1);
    while (atomicAdd(&reached, 0) < gridDim.x - from) {
    }
    out[blockIdx.x] = 1;
}
__global__ void forget_kernel() { reached = 0; }
extern "C" void meeting(int* out, int blocks, int from, cudaStream_t stream) {
    forget_kernel<<<1, 1, 0, stream>>>();
    meeting_kernel<<<blocks, 32, 0, stream>>>(out, from);
}

__global__ void memory_kernel(int* out, int from) {
    if (threadIdx.x || blockIdx.x < from) return;
    int* own = (int*)malloc(sizeof(int));
    *own = blockIdx.x;
    out[blockIdx.x] = *own;
    free(own);
}
extern "C" void memory(int* out, int blocks, int from, cudaStream_t stream) {
    memory_kernel<<<blocks, 32, 0, stream>>>(out, from);
}

// Several blocks fault. The first one in block order ends the launch.
__global__ void fault_kernel(int* out, int from, int how) {
    int sum = 0;
    for (int i = 0; i < 100 * (int)(gridDim.x - blockIdx.x); ++i) sum = sum * 7 + i;
    out[blockIdx.x] = sum;
    if (blockIdx.x < from) return;
    if (how == 0) assert(blockIdx.x < from);
    if (how == 1) __trap();
    if (how == 2) out[(long long)blockIdx.x << 44] = 1;
    if (how == 3) out[blockIdx.x] /= (int)threadIdx.x;
    if (how == 4 && threadIdx.x < 16) __syncthreads();
    __syncwarp();
}
extern "C" void fault(int* out, int blocks, int from, int how, cudaStream_t stream) {
    fault_kernel<<<blocks, 32, 0, stream>>>(out, from, how);
}

// Blocks `from` and later race for the same cells. `how`: 0: two writes; 1: a write, then a read; 2: a read, then a
// write; 3: two writes of the same value.
__global__ void conflict_kernel(int* cells, int* out, int from, int how) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = out[t] + 1;
    if (blockIdx.x < from) return;
    if (how == 0) cells[threadIdx.x] = t;
    if (how == 1) {
        cells[t] = t;
        out[t] = cells[t / 2];
    }
    if (how == 2) {
        out[t] += cells[t];
        cells[t / 2] = t;
    }
    if (how == 3) cells[threadIdx.x] = 7;
}
extern "C" void conflict(int* cells, int* out, int blocks, int from, int how, cudaStream_t stream) {
    conflict_kernel<<<blocks, 64, 0, stream>>>(cells, out, from, how);
    conflict_kernel<<<blocks, 64, 0, stream>>>(cells, out, from, how);
}

// The host changes memory that many threads of many blocks read, without waiting for the kernel.
__global__ void readers_kernel(const int* shared, int* out, int n) {
    int sum = 0;
    for (int round = 0; round < 3; ++round) {
        sum += shared[(threadIdx.x + 5 * round + blockIdx.x) % n];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" void readers(int* out, int blocks, int n, cudaStream_t stream) {
    int* managed;
    cudaMallocManaged(&managed, n * sizeof(int));
    for (int i = 0; i < n; ++i) managed[i] = i;
    readers_kernel<<<blocks, 64, 0, stream>>>(managed, out, n);
    for (int i = 0; i < n; ++i) managed[i] = 0;
    cudaFree(managed);
}

// Only some blocks use shared arrays, device variables and accesses smaller than a word.
__device__ int even_blocks[64], odd_blocks[64];
__global__ void late_kernel(unsigned* out) {
    if (blockIdx.x == 0) return;
    if (blockIdx.x % 2) {
        __shared__ unsigned odd[32];
        odd[threadIdx.x] = threadIdx.x;
        __syncthreads();
        odd_blocks[blockIdx.x / 2] = odd[31 - threadIdx.x];
    } else {
        __shared__ unsigned even[32];
        even[threadIdx.x] = threadIdx.x;
        __syncthreads();
        even_blocks[blockIdx.x / 2 - 1] = even[31 - threadIdx.x];
        ((char*)out)[128 * blockIdx.x + threadIdx.x] = 1;
        out[32 * blockIdx.x + threadIdx.x] = __cvta_generic_to_shared(even);
    }
}
extern "C" void late(unsigned* out, int blocks, cudaStream_t stream) { late_kernel<<<blocks, 32, 0, stream>>>(out); }
