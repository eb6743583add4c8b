// A different design: a grid-wide barrier. The launch is cooperative, so all blocks are resident at once. Each block
// sums many slices. The parameter `counter` is not used.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <algorithm>

namespace cg = cooperative_groups;

constexpr int kThreads = 256, kSlice = 4096;
constexpr int kMost = 8;  // maximum number of blocks: the simulator keeps a stack for each thread of a cooperative grid

__device__ float sum_of_block(const cg::thread_block& block, float mine) {
    __shared__ float partial[kThreads / 32];
    const auto warp = cg::tiled_partition<32>(block);
    mine = cg::reduce(warp, mine, cg::plus<float>());
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = mine;
    block.sync();
    float sum = 0;
    for (int i = 0; i < kThreads / 32; ++i) sum += partial[i];
    block.sync();
    return sum;
}

__global__ void __launch_bounds__(kThreads) sum_slices(const float* x, float* out, float* partials, int n, int slices) {
    const cg::grid_group grid = cg::this_grid();
    const cg::thread_block block = cg::this_thread_block();
    for (int slice = blockIdx.x; slice < slices; slice += gridDim.x) {
        const long long first = static_cast<long long>(slice) * kSlice;
        float mine = 0;
        for (long long i = first + threadIdx.x; i < first + kSlice && i < n; i += kThreads) mine += x[i];
        mine = sum_of_block(block, mine);
        if (threadIdx.x == 0) partials[slice] = mine;
    }
    grid.sync();
    if (blockIdx.x > 0) return;
    float mine = 0;
    for (int i = threadIdx.x; i < slices; i += kThreads) mine += partials[i];
    mine = sum_of_block(block, mine);
    if (threadIdx.x == 0) out[0] = mine;
}

extern "C" void single_pass_sum(const float* x, float* out, float* partials, int*, int n, cudaStream_t stream) {
    int slices = n / kSlice + (n % kSlice != 0), device = 0, processors = 0, each = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, sum_slices, kThreads, 0);
    const int blocks = std::min({slices, processors * each, kMost});
    void* arguments[] = {&x, &out, &partials, &n, &slices};
    cudaLaunchCooperativeKernel((void*)sum_slices, dim3(std::max(blocks, 1)), dim3(kThreads), arguments, 0, stream);
}
