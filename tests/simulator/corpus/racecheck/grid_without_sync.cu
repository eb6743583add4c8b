// The second phase of a cooperative kernel reads other blocks' writes of the first phase, without grid.sync().
// n = 1024 elements
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void reverse(const float* x, float* out, float* scratch, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[i] = x[i];  // expected finding: between_blocks
#ifdef CLEAN
    cg::this_grid().sync();
#else
    __syncthreads();
#endif
    out[i] = scratch[n - 1 - i];  // expected finding: between_blocks
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMallocAsync(&scratch, n * sizeof(float), stream);
    void* arguments[] = {&x, &out, &scratch, &n};
    cudaLaunchCooperativeKernel(reverse, dim3(n / 256), dim3(256), arguments, 0, stream);
    cudaFreeAsync(scratch, stream);
}
