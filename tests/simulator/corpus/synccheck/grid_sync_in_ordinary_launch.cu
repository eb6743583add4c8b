// A kernel calls grid.sync(), but its launch is not cooperative.
// n = 256 elements
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i];
    cg::this_grid().sync();  // expected finding: grid_sync_not_cooperative
    out[i] += 1;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    void* arguments[] = {&x, &out, &n};
    cudaLaunchCooperativeKernel(copy, dim3(2), dim3(128), arguments, 0, stream);
#else
    // clang-format off
    copy<<<2, 128, 0, stream>>>(x, out, n);
    // clang-format on
#endif
}
