// Some threads of each block exit before grid.sync().
// n = 256 elements
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void reverse(const float* x, float* out, float* scratch, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[i] = x[i];
#ifndef CLEAN
    if (threadIdx.x % 2) return;
#endif
    cg::this_grid().sync();  // expected finding: barrier_after_exit
    if (threadIdx.x % 2 == 0) {
        out[i] = scratch[n - 1 - i];
        out[i + 1] = scratch[n - 2 - i];
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMallocAsync(&scratch, n * sizeof(float), stream);
    void* arguments[] = {&x, &out, &scratch, &n};
    cudaLaunchCooperativeKernel(reverse, dim3(n / 128), dim3(128), arguments, 0, stream);
    cudaFreeAsync(scratch, stream);
}
