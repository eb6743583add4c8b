// Faulty kernels, one per launcher. None of them may harm the process.
#include <cassert>
#include <cstdio>

#include <cuda_runtime.h>

__global__ void wild_kernel(int* out, long long offset) { out[offset * threadIdx.x] = 1; }
extern "C" void wild(int* out, long long offset, cudaStream_t stream) {
    wild_kernel<<<2, 64, 0, stream>>>(out, offset);
}

__global__ void null_kernel(const int* nothing, int* out) { out[0] = nothing[threadIdx.x]; }
// The null address is a parameter, because a compiler may assume that code with a constant null pointer never runs.
extern "C" void null_pointer(int* out, long long address, cudaStream_t stream) {
    null_kernel<<<1, 32, 0, stream>>>((const int*)address, out);
}

__global__ void misaligned_kernel(const float* x, float* out, int offset) {
    const float4 four = *(const float4*)(x + offset);
    out[0] = four.x + four.y + four.z + four.w;
}
extern "C" void misaligned(const float* x, float* out, int offset, cudaStream_t stream) {
    misaligned_kernel<<<1, 1, 0, stream>>>(x, out, offset);
}

__global__ void misaligned_atomic_kernel(char* x) { atomicAdd((int*)(x + 2), 1); }
extern "C" void misaligned_atomic(int* x, cudaStream_t stream) {
    misaligned_atomic_kernel<<<1, 1, 0, stream>>>((char*)x);
}

__global__ void wild_atomic_kernel(int* x) { atomicAdd(x + (1ll << 44), 1); }
extern "C" void wild_atomic(int* x, cudaStream_t stream) { wild_atomic_kernel<<<1, 1, 0, stream>>>(x); }

__global__ void divide_kernel(const int* x, int* out) { out[0] = x[0] / x[threadIdx.x]; }
extern "C" void divide(const int* x, int* out, cudaStream_t stream) { divide_kernel<<<1, 4, 0, stream>>>(x, out); }

__device__ __attribute__((noinline)) int deep(int n, volatile int* sink) {
    volatile int local[64];
    for (int i = 0; i < 64; ++i) local[i] = n + i;
    if (n > 0) local[1] = deep(n - 1, sink);
    *sink = local[1];
    return local[n % 64] + local[1];
}
__global__ void recursion_kernel(int* out, int depth) { out[threadIdx.x] = deep(depth, out + 32 + threadIdx.x); }
extern "C" void recursion(int* out, int depth, cudaStream_t stream) {
    recursion_kernel<<<1, 2, 0, stream>>>(out, depth);
}

__global__ void big_local_kernel(int* out, int n) {
    volatile char local[1 << 20];
    for (int i = 0; i < n; ++i) local[i] = i;
    out[0] = local[n - 1];
}
extern "C" void big_local(int* out, int n, cudaStream_t stream) { big_local_kernel<<<1, 1, 0, stream>>>(out, n); }

__global__ void forever_kernel(int* out) {
    volatile int one = 1;
    while (one) out[threadIdx.x] = out[threadIdx.x] + 1;
}
extern "C" void forever(int* out, cudaStream_t stream) { forever_kernel<<<1, 4, 0, stream>>>(out); }

// The compiler may turn this loop into an instruction that jumps to itself.
__global__ void stuck_kernel(const int* flag) {
    while (*flag == 0) {
    }
}
extern "C" void stuck(const int* flag, cudaStream_t stream) { stuck_kernel<<<1, 4, 0, stream>>>(flag); }

__global__ void wait_for_ever_kernel(int* flag) {
    while (atomicAdd(flag, 0) == 0) {
    }
}
extern "C" void wait_for_ever(int* flag, cudaStream_t stream) { wait_for_ever_kernel<<<2, 40, 0, stream>>>(flag); }

// Two warps alternate, and each one polls until the other makes progress. This is slow, but it ends. A thread also
// polls `patience` times for a value that never arrives.
__global__ void take_turns_kernel(int* turn, int rounds, int patience) {
    if (threadIdx.x % 32 != 0) return;
    const int side = threadIdx.x / 32;
    for (int i = 0; i < rounds; ++i) {
        while (atomicAdd(turn, 0) % 2 != side) {
        }
        for (int k = 0; k < patience && atomicAdd(turn + 1, 0) == 0; ++k) {
        }
        atomicAdd(turn, 1);
    }
}
extern "C" void take_turns(int* turn, int rounds, int patience, cudaStream_t stream) {
    take_turns_kernel<<<1, 64, 0, stream>>>(turn, rounds, patience);
}

__global__ void barrier_for_ever_kernel(int* out) {
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) ++out[0];
    }
}
extern "C" void barrier_for_ever(int* out, cudaStream_t stream) { barrier_for_ever_kernel<<<2, 40, 0, stream>>>(out); }

__global__ void barrier_and_warp_kernel(int* out) {
    if (threadIdx.x < 8) {
        __syncthreads();
    } else {
        out[threadIdx.x] = __shfl_sync(0xffffffff, threadIdx.x, 0);
    }
}
extern "C" void barrier_and_warp(int* out, cudaStream_t stream) { barrier_and_warp_kernel<<<3, 64, 0, stream>>>(out); }

__global__ void masks_differ_kernel(int* out) {
    out[threadIdx.x] = __shfl_sync(threadIdx.x % 2 ? 0xfffffffe : 0xffffffff, threadIdx.x, 1);
}
extern "C" void masks_differ(int* out, cudaStream_t stream) { masks_differ_kernel<<<1, 32, 0, stream>>>(out); }

__global__ void kinds_differ_kernel(int* out) {
    if (threadIdx.x % 2)
        out[threadIdx.x] = __any_sync(0xffffffff, 1);
    else
        out[threadIdx.x] = __shfl_sync(0xffffffff, 3, 0);
}
extern "C" void kinds_differ(int* out, cudaStream_t stream) { kinds_differ_kernel<<<1, 32, 0, stream>>>(out); }

__global__ void not_in_mask_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0xfffffffe, threadIdx.x, 1); }
extern "C" void not_in_mask(int* out, cudaStream_t stream) { not_in_mask_kernel<<<1, 32, 0, stream>>>(out); }

__global__ void trap_kernel(int* out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x == 3) __trap();
}
extern "C" void trap(int* out, cudaStream_t stream) { trap_kernel<<<1, 8, 0, stream>>>(out); }

__global__ void assert_kernel(const int* x) {
    printf("thread %d\n", threadIdx.x);
    assert(x[threadIdx.x] != 5);
}
extern "C" void assertion(const int* x, cudaStream_t stream) { assert_kernel<<<1, 8, 0, stream>>>(x); }

#if 1
#define RAISE throw 1  // hides `throw` from the front end, which refuses exceptions in device code
#endif
__global__ void throw_kernel() {
    if (threadIdx.x == 1) RAISE;
}
extern "C" void throws(int* out, cudaStream_t stream) {
    throw_kernel<<<1, 2, 0, stream>>>();
    (void)out;
}

__global__ void fine_kernel(int* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" void fine(int* out, cudaStream_t stream) { fine_kernel<<<1, 32, 0, stream>>>(out); }

// After a fault all further calls fail, whether or not the launcher has queried the error.
extern "C" void fault_then_fine(int* out, int* errors, cudaStream_t stream) {
    int* scratch = nullptr;
    fine_kernel<<<1, 2000, 0, stream>>>(out);  // this launch is refused, which is no fault
    errors[0] = cudaGetLastError();
    errors[1] = cudaGetLastError();
    trap_kernel<<<1, 8, 0, stream>>>(out + 32);
    errors[2] = cudaGetLastError();
    errors[3] = cudaMalloc(&scratch, 64);
    fine_kernel<<<1, 32, 0, stream>>>(out);
    errors[4] = cudaDeviceSynchronize();
}
