// Right kernels in which a block adds to a counter again and again until another block has finished.
#include <cuda_runtime.h>

__device__ int counters[3];

static void clear_counters() {
    const int zeros[3] = {};
    cudaMemcpyToSymbol(counters, zeros, sizeof zeros);
}

// Thread 0 of block 0 polls two counters in turn, with barriers in the loop; block 1 adds to both.
// x, out: [64]
__global__ void two_counters(const int* x, int* out) {
    __shared__ int seen;
    if (blockIdx.x == 0) {
        do {
            __syncthreads();
            if (threadIdx.x == 0) seen = atomicAdd(&counters[0], 0) >= 1 && atomicAdd(&counters[1], 0) >= 1;
            __syncthreads();
        } while (!seen);
        out[threadIdx.x] = x[threadIdx.x];
    } else if (threadIdx.x == 0) {
        atomicAdd(&counters[0], 1);
        atomicAdd(&counters[1], 1);
    }
}

extern "C" void poll_two_counters(const int* x, int* out) {
    clear_counters();
    two_counters<<<2, 64>>>(x, out);
}

// Blocks without a task put their ticket back until all tasks are finished. A block without a task is never idle.
// x, out: [64], 32 per task
__global__ void put_back(const int* x, int* out) {
    while (atomicAdd(&counters[1], 0) < 2) {
        const int task = atomicAdd(&counters[0], 1);
        if (task < 2) {
            for (int i = 0; i < 32; ++i) out[task * 32 + i] = x[task * 32 + i];
            __threadfence();
            atomicAdd(&counters[1], 1);
        } else {
            atomicSub(&counters[0], 1);
        }
    }
}

extern "C" void put_tickets_back(const int* x, int* out) {
    clear_counters();
    put_back<<<3, 1>>>(x, out);
}

// Block 1 counts its polls while block 0, which has added twice, sets a flag.
// x, out: [64]
__global__ void counted_polls(const int* x, int* out) {
    if (blockIdx.x == 0) {
        atomicAdd(&counters[0], 1);
        atomicAdd(&counters[0], 1);
        for (int i = 0; i < 64; ++i) out[i] = x[i];
        __threadfence();
        atomicExch(&counters[1], 1);
    } else {
        while (atomicAdd(&counters[1], 0) == 0) atomicAdd(&counters[2], 1);
    }
}

extern "C" void count_polls(const int* x, int* out) {
    clear_counters();
    counted_polls<<<2, 1>>>(x, out);
}
