// Kernels with cooperative groups: blocks, grids, tiles, coalesced groups, reductions, scans, asynchronous copies.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// Writes the ranks of every thread in its groups.
__global__ void ranks(int* out) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
    auto of_block = cg::tiled_partition<16>(block);
    int* own = out + grid.thread_rank() * 14;
    own[0] = (int)grid.block_rank();
    own[1] = (int)grid.num_blocks();
    own[2] = block.thread_rank();
    own[3] = block.size();
    own[4] = warp.thread_rank();
    own[5] = warp.meta_group_rank();
    own[6] = warp.meta_group_size();
    own[7] = tile.thread_rank();
    own[8] = tile.meta_group_rank();
    own[9] = tile.meta_group_size();
    own[10] = of_block.meta_group_rank();
    own[11] = of_block.meta_group_size();
    own[12] = block.group_index().x + 10 * block.group_index().y + 100 * block.thread_index().x;
    own[13] = (int)grid.size() + tile.num_threads();
}

// Returns the sum over a group, for any group type with shfl_down.
template <typename Group>
__device__ float sum_by_shuffles(const Group& group, float value) {
    for (unsigned distance = group.size() / 2; distance > 0; distance /= 2) value += group.shfl_down(value, distance);
    return value;
}
__global__ void block_sum(const float* x, float* out, int n) {
    __shared__ float partial[32];
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = sum_by_shuffles(warp, i < n ? x[i] : 0.0f);
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = sum;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        sum = warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0.0f;
        sum = cg::reduce(warp, sum, cg::plus<float>());
        cg::invoke_one(warp, [&] { out[blockIdx.x] = sum; });
    }
}

struct Best {
    float value;
    int index;
};

__global__ void reductions(const float* x, const int* words, float* floats, int* ints, double* doubles) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<4>(block);
    int lane = threadIdx.x;
    floats[lane] = cg::reduce(warp, x[lane], cg::plus<float>());
    floats[32 + lane] = cg::reduce(tile, x[lane], cg::greater<float>());
    floats[64 + lane] = cg::reduce(tile, x[lane], [](float a, float b) { return a * b; });
    ints[lane] = cg::reduce(warp, words[lane], cg::bit_xor<int>());
    ints[32 + lane] = cg::reduce(tile, words[lane], cg::less<int>());
    Best best = cg::reduce(warp, Best{x[lane], lane}, [](Best a, Best b) { return b.value > a.value ? b : a; });
    ints[64 + lane] = best.index;
    ints[96 + lane] = cg::inclusive_scan(warp, words[lane] & 15);
    ints[128 + lane] = cg::exclusive_scan(tile, words[lane] & 15, cg::plus<int>());
    doubles[lane] = cg::reduce(warp, (double)x[lane], cg::plus<double>());
}

__global__ void votes(int* out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto tile = cg::tiled_partition<8>(warp);
    int lane = threadIdx.x, predicate;
    out[lane] = warp.any(lane == 3) + 2 * warp.all(lane < 32) + 4 * tile.any(lane == 3);
    out[32 + lane] = (int)tile.ballot(lane % 3 == 0);
    out[64 + lane] = (int)tile.match_any(lane / 2);
    out[96 + lane] = (int)warp.match_all(7, predicate) + predicate;
    out[128 + lane] = tile.shfl(lane, 2) + 100 * tile.shfl_up(lane, 1) + 10000 * tile.shfl_xor(lane, 5);
}

// The active threads of a branch form a group, and one of them adds for all.
__global__ void coalesced(const int* x, int* count, int* out) {
    int lane = threadIdx.x;
    out[lane] = -1;
    if (x[lane] > 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0) first = atomicAdd(count, (int)active.size());
        first = active.shfl(first, 0);
        out[lane] = first + active.thread_rank();
        out[32 + lane] = cg::reduce(active, x[lane], cg::plus<int>());
        auto same = cg::labeled_partition(active, x[lane]);
        out[64 + lane] = 100 * (int)same.meta_group_rank() + 10 * (int)same.meta_group_size() + (int)same.size();
        auto half = cg::binary_partition(active, lane < 16);
        out[96 + lane] = (int)half.size();
        out[128 + lane] =
            active.shfl_down(lane, 1) + 100 * active.shfl_up(lane, 1) + 10000 * (int)active.ballot(lane & 1);
    }
}

// A grid-wide barrier: the second phase reads what other blocks wrote in the first.
__global__ void neighbors(int* values, int* out) {
    auto grid = cg::this_grid();
    unsigned long long i = grid.thread_rank();
    values[i] = (int)i * 3;
    grid.sync();
    out[i] = grid.is_valid() ? values[(i + 100) % grid.size()] : -1;
}

__device__ void copy_by_any_group(cg::thread_group group, const float* from, float* to, int n) {
    for (int i = (int)group.thread_rank(); i < n; i += (int)group.size()) to[i] = from[i];
    group.sync();
}
__global__ void copies(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x, sizeof(float) * n);
    cg::wait(block);
    copy_by_any_group(block, tile, out, n);
    auto warp = cg::tiled_partition<32>(block);
    if (warp.meta_group_rank() == 0) copy_by_any_group(warp, tile, out + n, n);
    if (warp.meta_group_rank() == 1) copy_by_any_group(cg::tiled_partition(block, 32), tile, out + 2 * n, n);
}

extern "C" void get_ranks(int* out, cudaStream_t stream) { ranks<<<dim3(3, 2), dim3(32, 3), 0, stream>>>(out); }
extern "C" void sum_blocks(const float* x, float* out, int n, int threads, cudaStream_t stream) {
    block_sum<<<(n + threads - 1) / threads, threads, 0, stream>>>(x, out, n);
}
extern "C" void reduce_all(const float* x, const int* words, float* floats, int* ints, double* doubles,
                           cudaStream_t stream) {
    reductions<<<1, 32, 0, stream>>>(x, words, floats, ints, doubles);
}
extern "C" void vote(int* out, cudaStream_t stream) { votes<<<1, 32, 0, stream>>>(out); }
extern "C" void compact(const int* x, int* count, int* out, cudaStream_t stream) {
    coalesced<<<1, 32, 0, stream>>>(x, count, out);
}
extern "C" void meet(int* values, int* out, int blocks, int threads, cudaStream_t stream) {
    void* arguments[] = {&values, &out};
    cudaLaunchCooperativeKernel((void*)neighbors, dim3(blocks), dim3(threads), arguments, 0, stream);
}
extern "C" void copy(const float* x, float* out, int n, cudaStream_t stream) {
    copies<<<1, 96, n * sizeof(float), stream>>>(x, out, n);
}
