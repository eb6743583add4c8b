// Races that occur in one order of blocks or warps only, because a lock, a ticket or a flag orders the accesses in the
// other one. If `clean` is set, the fault is fixed. `data`, `sync` and `out` are zero before each launch.
#include <cuda/atomic>
#include <cuda_runtime.h>

__device__ void take(int* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
}

__device__ void give(int* lock) {
    __threadfence();
    atomicExch(lock, 0);
}

// The last block writes after it has released the lock.
__global__ void writes_after_unlock_kernel(int* data, int* sync, int* out, bool clean) {
    take(sync);
    if (blockIdx.x == 0) out[0] = data[0];
    if (blockIdx.x == 1 && clean) data[0] = 1;
    give(sync);
    if (blockIdx.x == 1 && !clean) data[0] = 1;
}
extern "C" void writes_after_unlock(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    writes_after_unlock_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

// The first block reads before it takes the lock.
__global__ void reads_before_lock_kernel(int* data, int* sync, int* out, bool clean) {
    int seen = 0;
    if (blockIdx.x == 0 && !clean) seen = data[0];
    take(sync);
    if (blockIdx.x == 0 && clean) seen = data[0];
    if (blockIdx.x == 1) data[0] = 1;
    give(sync);
    out[blockIdx.x] = seen;
}
extern "C" void reads_before_lock(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    reads_before_lock_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

// Two warps of a block: the second one writes after it has released the lock.
__global__ void warp_writes_after_unlock_kernel(int* data, int* sync, int* out, bool clean) {
    if (threadIdx.x % 32 == 0) {
        const int warp = threadIdx.x / 32;
        take(sync);
        if (warp == 0) out[0] = data[0];
        if (warp == 1 && clean) data[0] = 1;
        give(sync);
        if (warp == 1 && !clean) data[0] = 1;
    }
}
extern "C" void warp_writes_after_unlock(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    warp_writes_after_unlock_kernel<<<1, 64, 0, stream>>>(data, sync, out, clean);
}

// The first block writes after it has released the lock: a race in forward order.
__global__ void first_writes_after_unlock_kernel(int* data, int* sync, int* out, bool clean) {
    take(sync);
    if (blockIdx.x == 1) out[0] = data[0];
    if (blockIdx.x == 0 && clean) data[0] = 1;
    give(sync);
    if (blockIdx.x == 0 && !clean) data[0] = 1;
}
extern "C" void first_writes_after_unlock(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    first_writes_after_unlock_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

// The block with the largest index adds the partial results, instead of the block that draws the last ticket.
__global__ void last_index_adds_kernel(int* data, int* sync, int* out, bool clean) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    const int last = gridDim.x - 1;
    const bool all_done = atomicAdd(sync, 1) == last;
    if (clean ? all_done : blockIdx.x == last) {
        __threadfence();
        int sum = 0;
        for (int i = 0; i <= last; ++i) sum += data[i];
        out[0] = sum;
    }
}
extern "C" void last_index_adds(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    last_index_adds_kernel<<<5, 1, 0, stream>>>(data, sync, out, clean);
}

// The consumer tests the flag once instead of waiting for it.
__global__ void tests_flag_once_kernel(int* data, int* sync, int* out, bool clean) {
    if (blockIdx.x == 0) {
        data[0] = 1;
        __threadfence();
        atomicExch(sync, 1);
    } else {
        while (atomicAdd(sync, 0) == 0 && clean) {
        }
        __threadfence();
        out[0] = data[0];
    }
}
extern "C" void tests_flag_once(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    tests_flag_once_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

// The same with a volatile flag, and with cuda::atomic_ref.
__global__ void tests_volatile_once_kernel(int* data, volatile int* sync, int* out, bool clean) {
    if (blockIdx.x == 0) {
        data[0] = 1;
        __threadfence();
        *sync = 1;
    } else {
        while (*sync == 0 && clean) {
        }
        __threadfence();
        out[0] = data[0];
    }
}
extern "C" void tests_volatile_once(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    tests_volatile_once_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

__global__ void tests_acquire_once_kernel(int* data, int* sync, int* out, bool clean) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(*sync);
    if (blockIdx.x == 0) {
        data[0] = 1;
        flag.store(1, cuda::std::memory_order_release);
    } else {
        while (flag.load(cuda::std::memory_order_acquire) == 0 && clean) {
        }
        out[0] = data[0];
    }
}
extern "C" void tests_acquire_once(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    tests_acquire_once_kernel<<<2, 1, 0, stream>>>(data, sync, out, clean);
}

// The last block waits for one of its two producers.
__global__ void waits_for_one_of_two_kernel(int* data, int* sync, int* out, bool clean) {
    if (blockIdx.x < 2) {
        data[blockIdx.x] = 1;
        __threadfence();
        atomicAdd(sync, 1);
    } else {
        while (atomicAdd(sync, 0) < (clean ? 2 : 1)) {
        }
        __threadfence();
        out[0] = data[0] + data[1];
    }
}
extern "C" void waits_for_one_of_two(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    waits_for_one_of_two_kernel<<<3, 1, 0, stream>>>(data, sync, out, clean);
}

// Two warps: the second one tests the flag of the first one once.
__global__ void warp_tests_flag_once_kernel(int* data, int* sync, int* out, bool clean) {
    if (threadIdx.x == 0) {
        data[0] = 1;
        __threadfence_block();
        atomicExch(sync, 1);
    } else if (threadIdx.x == 32) {
        while (atomicAdd(sync, 0) == 0 && clean) {
        }
        __threadfence_block();
        out[0] = data[0];
    }
}
extern "C" void warp_tests_flag_once(int* data, int* sync, int* out, bool clean, cudaStream_t stream) {
    warp_tests_flag_once_kernel<<<1, 64, 0, stream>>>(data, sync, out, clean);
}
