// A program that tests the processor-dependent parts of the simulator: stack switches, faults, atomics and clock ticks.
// It exits with 0 if all work.
#include <cstdio>

#include <cuda_runtime.h>

__global__ void sum_kernel(const float* x, float* out, int n) {
    __shared__ float line[32];
    float sum = 0.0f;
    double other = 1.5;  // stays in a register while fibers switch stacks at barriers
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) line[threadIdx.x / 32] = sum;
    other += threadIdx.x;
    __syncthreads();
    sum = threadIdx.x % 32 < blockDim.x / 32 ? line[threadIdx.x % 32] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (other != 1.5 + threadIdx.x) sum = -1.0f;
    atomicAdd(out, sum / blockDim.x);
}

__global__ void null_kernel(int* out, const int* nothing) { out[0] = nothing[threadIdx.x]; }

__device__ __noinline__ int deep(int n, volatile int* sink) {
    volatile int local[64];
    for (int i = 0; i < 64; ++i) local[i] = n + i;
    if (n > 0) local[1] = deep(n - 1, sink);
    *sink = local[1];
    return local[n % 64];
}
__global__ void recursion_kernel(int* out) { out[0] = deep(1 << 20, out + 1); }

__global__ void forever_kernel(volatile int* flag) {
    while (*flag == 0) {
    }
}

__global__ void polling_kernel(volatile int* flags) {
    if (blockIdx.x == 0) {
        while (flags[1] == 0) {
        }
    }
    flags[blockIdx.x] = 1;
}

__global__ void deadlock_kernel(int* out) {
    if (threadIdx.x < 4)
        __syncthreads();
    else
        out[threadIdx.x] = __any_sync(0xffffffffu, 1);
}

// Checks a launch's error. A fault's error must remain until the device is reset.
int expect(const char* what, int got, int wanted) {
    if (got != cudaSuccess && cudaGetLastError() != got) printf("%s: the error went away\n", what);
    cudaDeviceReset();
    if (got != wanted) printf("%s: %d instead of %d\n", what, got, wanted);
    return got != wanted;
}

int main() {
    constexpr int n = 10000;
    float *x, *out, result = 0;
    int *flags, bad = 0;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&out, sizeof(float));
    cudaMalloc(&flags, 1024);
    cudaMemset(flags, 0, 1024);
    cudaMemset(out, 0, sizeof(float));
    for (int i = 0; i < n; ++i) {
        const float one = 1.0f;
        cudaMemcpy(x + i, &one, sizeof one, cudaMemcpyHostToDevice);
    }
    for (int round = 0; round < 3; ++round) {
        for (int threads = 32; threads <= 1024; threads *= 2) {
            cudaMemset(out, 0, sizeof(float));
            sum_kernel<<<3, threads>>>(x, out, n);
            cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
            bad += (int)(result + 0.5f) != 3 * n;
        }
        null_kernel<<<1, 32>>>(flags, nullptr);
        bad += expect("null pointer", cudaGetLastError(), cudaErrorIllegalAddress);
        recursion_kernel<<<1, 1>>>(flags);
        bad += expect("recursion", cudaGetLastError(), cudaErrorHardwareStackError);
        deadlock_kernel<<<2, 32>>>(flags);
        bad += expect("deadlock", cudaGetLastError(), cudaErrorLaunchTimeout);
        cudaMemset(flags, 0, 1024);
        polling_kernel<<<2, 1>>>(flags);
        bad += expect("polling", cudaGetLastError(), cudaSuccess);
    }
    cudaMemset(flags, 0, 1024);
    forever_kernel<<<1, 2>>>(flags);
    bad += expect("infinite loop", cudaGetLastError(), cudaErrorLaunchTimeout);
    printf(bad ? "%d failed\n" : "all is well\n", bad);
    return bad;
}
