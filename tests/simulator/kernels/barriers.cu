// __syncthreads and its variants, named barriers, exited threads, grid-wide barriers, and blocks that wait for each
// other.
#include <cuda_runtime.h>

#include <cooperative_groups.h>

__global__ void neighbors_kernel(int* out, int rounds) {
    __shared__ int line[1024];
    const int t = threadIdx.x, n = blockDim.x;
    line[t] = t;
    __syncthreads();
    for (int r = 0; r < rounds; ++r) {
        const int value = line[(t + 1) % n];
        __syncthreads();
        line[t] = value;
        __syncthreads();
    }
    out[blockIdx.x * n + t] = line[t];
}

extern "C" void neighbors(int* out, int blocks, int threads, int rounds, cudaStream_t stream) {
    neighbors_kernel<<<blocks, threads, 0, stream>>>(out, rounds);
}

__global__ void predicates_kernel(int* out, int n) {
    const int t = threadIdx.x;
    const int count = __syncthreads_count(t % 3 == 0);
    const int all = __syncthreads_and(t < n);
    const int some = __syncthreads_or(t == n - 1 ? 4 : 0);
    const int none = __syncthreads_or(t > n);
    const int not_all = __syncthreads_and(t != 5);
    out[t] = count * 10000 + all * 1000 + some * 100 + none * 10 + not_all;
}

extern "C" void predicates(int* out, int n, cudaStream_t stream) { predicates_kernel<<<1, n, 0, stream>>>(out, n); }

// Barriers do not wait for exited threads.
__global__ void early_exit_kernel(int* out, int n) {
    if (threadIdx.x >= n) return;
    const int count = __syncthreads_count(1);
    __syncthreads();
    out[threadIdx.x] = count;
}

extern "C" void early_exit(int* out, int threads, int n, cudaStream_t stream) {
    early_exit_kernel<<<1, threads, 0, stream>>>(out, n);
}

// Two warps produce and two consume, ordered by bar.sync and bar.arrive.
__global__ void producer_kernel(int* out) {
    __shared__ int buffer[64];
    const int t = threadIdx.x;
    if (t < 64) {
        buffer[t] = t * t;
        asm volatile("bar.arrive 1, 128;");
    } else {
        asm volatile("bar.sync 1, 128;");
        out[t - 64] = buffer[127 - t];
    }
}

extern "C" void producer(int* out, cudaStream_t stream) { producer_kernel<<<1, 128, 0, stream>>>(out); }

__global__ void grid_kernel(int* data, int* sums, int rounds) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int r = 0; r < rounds; ++r) {
        const int value = data[(i + 1) % n];
        grid.sync();
        data[i] = value;
        grid.sync();
    }
    if (i == 0) sums[0] = (int)grid.size();
}

extern "C" void whole_grid(int* data, int* sums, int blocks, int threads, int rounds, bool cooperative,
                           cudaStream_t stream) {
    void* arguments[] = {&data, &sums, &rounds};
    if (cooperative) {
        cudaLaunchCooperativeKernel((void*)grid_kernel, dim3(blocks), dim3(threads), arguments, 0, stream);
    } else {
        grid_kernel<<<blocks, threads, 0, stream>>>(data, sums, rounds);
    }
}

// The last block to finish adds the results of all blocks.
__device__ unsigned int finished;

__global__ void last_block_kernel(const float* x, float* partial, float* out, int n) {
    __shared__ float line[128];
    __shared__ bool last;
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) sum += x[i];
    line[t] = sum;
    __syncthreads();
    if (t == 0) {
        float total = 0.0f;
        for (int i = 0; i < 128; ++i) total += line[i];
        partial[blockIdx.x] = total;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        float total = 0.0f;
        for (int b = 0; b < gridDim.x; ++b) total += ((volatile float*)partial)[b];
        out[0] = total;
    }
}

extern "C" void last_block(const float* x, float* partial, float* out, int n, int blocks, cudaStream_t stream) {
    last_block_kernel<<<blocks, 128, 0, stream>>>(x, partial, out, n);
}

// Block b waits for block b + 1, which starts later.
__global__ void wait_for_next_kernel(int* flags, int* order) {
    if (threadIdx.x == 0) {
        if (blockIdx.x + 1 < gridDim.x) {
            while (atomicAdd(&flags[blockIdx.x + 1], 0) == 0) {
            }
        }
        order[blockIdx.x] = atomicAdd(&flags[gridDim.x], 1);
        __threadfence();
        atomicExch(&flags[blockIdx.x], 1);
    }
    __syncthreads();
}

extern "C" void wait_for_next(int* flags, int* order, int blocks, int threads, cudaStream_t stream) {
    wait_for_next_kernel<<<blocks, threads, 0, stream>>>(flags, order);
}

// Block b waits for block b + 1 by polling a volatile variable, without a call into the simulator.
__global__ void wait_volatile_kernel(int* flags, int* order) {
    volatile int* seen = flags;
    if (threadIdx.x == 0) {
        if (blockIdx.x + 1 < gridDim.x) {
            while (seen[blockIdx.x + 1] == 0) {
            }
        }
        order[blockIdx.x] = blockIdx.x;
        __threadfence();
        seen[blockIdx.x] = 1;
    }
    __syncthreads();
}

extern "C" void wait_volatile(int* flags, int* order, int blocks, int threads, cudaStream_t stream) {
    wait_volatile_kernel<<<blocks, threads, 0, stream>>>(flags, order);
}

// A spin lock that all threads of all blocks take.
__global__ void spin_lock_kernel(int* lock, int* counter, int rounds) {
    for (int r = 0; r < rounds; ++r) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                *counter = *counter + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}

extern "C" void spin_lock(int* lock, int* counter, int blocks, int threads, int rounds, cudaStream_t stream) {
    spin_lock_kernel<<<blocks, threads, 0, stream>>>(lock, counter, rounds);
}

// All threads take a lock and sleep while they hold it. This ends only if the scheduler is fair.
__global__ void lock_in_block_kernel(int* lock, volatile int* counter) {
    if (threadIdx.x % 2) __nanosleep(10);
    while (atomicExch(lock, 1) != 0) __nanosleep(20);
    __threadfence();
    for (int i = 0; i < 3; ++i) {
        const int old = *counter;
        __nanosleep(5);
        *counter = old + 1;
    }
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" void lock_in_block(int* lock, int* counter, int blocks, int threads, cudaStream_t stream) {
    lock_in_block_kernel<<<blocks, threads, 0, stream>>>(lock, counter);
}

// A histogram without shared-memory atomics: a lane writes a new count, tagged with its lane number, until it reads its
// own value back.
__global__ void read_back_kernel(const int* bins, int* done, int rounds) {
    volatile __shared__ unsigned counts[4];
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < rounds; ++i) {
        unsigned bin = bins[32 * i + threadIdx.x], count;
        do {
            count = ((counts[bin] & 0x7ffffffu) + 1) | threadIdx.x << 27;
            counts[bin] = count;
        } while (counts[bin] != count);
    }
    done[threadIdx.x] = 1;
}

extern "C" void read_back(const int* bins, int* done, int rounds, cudaStream_t stream) {
    read_back_kernel<<<1, 32, 0, stream>>>(bins, done, rounds);
}

// Each of the first `waiting` blocks waits for its successor, which may not have started. One or all threads poll, and
// the block passes a barrier after each poll. `how` chooses the poll and the barrier.
__device__ bool is_set(int* flag, int how) {
    if (how == 1) return *(volatile int*)flag != 0;
    if (how == 2) return atomicCAS(flag, 1, 1) == 1;
    return atomicAdd(flag, 0) != 0;
}

__device__ void named_barrier() { asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory"); }

__global__ void wait_through_barriers_kernel(int* flags, int* order, int waiting, int how) {
    __shared__ bool done;
    if (blockIdx.x < waiting) {
        int* next = &flags[blockIdx.x + 1];
        if (how == 3) {
            while (!__syncthreads_or(threadIdx.x == 0 && is_set(next, how))) {
            }
        } else if (how == 4) {
            while (!__syncthreads_and(is_set(next, how))) {
            }
        } else {
            for (;;) {
                if (threadIdx.x == 0) done = is_set(next, how);
                if (how == 5)
                    named_barrier();
                else
                    __syncthreads();
                if (done) break;
                __syncthreads();
            }
        }
    }
    if (threadIdx.x == 0) {
        order[blockIdx.x] = blockIdx.x < waiting ? order[blockIdx.x + 1] + 1 : 0;
        __threadfence();
        atomicExch(&flags[blockIdx.x], 1);
    }
}

extern "C" void wait_through_barriers(int* flags, int* order, int blocks, int waiting, int how, cudaStream_t stream) {
    wait_through_barriers_kernel<<<blocks, 64, 0, stream>>>(flags, order, waiting, how);
}
