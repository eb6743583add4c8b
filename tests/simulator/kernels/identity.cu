// Kernels that write the indices and dimensions of threads, blocks and grids.
#include <cuda_runtime.h>

// out is (blocks, threads, 12): blockIdx, threadIdx, blockDim, gridDim.
__global__ void who_am_i(int* out) {
    const long long block = blockIdx.x + gridDim.x * (blockIdx.y + (long long)gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int* mine = out + (block * (blockDim.x * blockDim.y * blockDim.z) + thread) * 12;
    const uint3 t = threadIdx;
    const dim3 d = blockDim;
    const int values[12] = {(int)blockIdx.x, (int)blockIdx.y, (int)blockIdx.z, (int)t.x,
                            (int)t.y,        (int)t.z,        (int)d.x,        (int)d.y,
                            (int)d.z,        (int)gridDim.x,  (int)gridDim.y,  (int)gridDim.z};
    for (int i = 0; i < 12; ++i) mine[i] = values[i];
}

extern "C" void identity(int* out, int gx, int gy, int gz, int bx, int by, int bz, cudaStream_t stream) {
    who_am_i<<<dim3(gx, gy, gz), dim3(bx, by, bz), 0, stream>>>(out);
}

// A launch in nested templates, split over several lines, with expressions in its configuration.
template <typename T, int N>
struct Add {
    __device__ T operator()(T x) const { return x + N; }
};

template <typename F, typename T>
__global__ void __launch_bounds__(256) apply(T* __restrict__ out, const __grid_constant__ F f, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(out[i]);
}

// clang-format off
extern "C" void launch_forms(int* out, int n, cudaStream_t stream) {
    const int threads = n > 64 ? 64 : 32;
    apply<Add<int, (3 > 2 ? 1 : 2)>, int><<<(n + threads - 1) / threads,
                                            threads,
                                            n > 1000 ? 0 : 0,
                                            stream>>>(out, Add<int, (3 > 2 ? 1 : 2)>{}, n);
    apply<<<(n + 31) >> 5, 32>>>(out, Add<int, 10>{}, n);
    int offset = 100;
    auto lambda = [=] __device__(int x) { return x + offset; };
    apply<<<dim3((n + 31) / 32), dim3(32)>>>(out, lambda, n);
}
// clang-format on

__global__ void count_up(int* out) { out[threadIdx.x] = threadIdx.x; }

// Launches with any configuration. If CUDA refuses it, the kernel must not run.
extern "C" void configuration(int* out, int gx, int gy, int gz, int bx, int by, int bz, int shared,
                              cudaStream_t stream) {
    count_up<<<dim3(gx, gy, gz), dim3(bx, by, bz), shared, stream>>>(out);
}
