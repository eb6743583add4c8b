// Kernels with CUB's warp-wide and block-wide collectives.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>

struct Best {
    float value;
    int index;
};

template <int THREADS>
__global__ void reduce_block(const float* x, float* out, int* best, int valid) {
    typedef cub::BlockReduce<float, THREADS> Reduce;
    typedef cub::BlockReduce<Best, THREADS> ReduceBest;
    __shared__ union {
        typename Reduce::TempStorage floats;
        typename ReduceBest::TempStorage pairs;
    } storage;
    int thread = threadIdx.x;
    float items[3] = {x[thread], x[THREADS + thread], x[2 * THREADS + thread]};
    float sum = Reduce(storage.floats).Sum(items[0]);
    __syncthreads();
    float sum_of_valid = Reduce(storage.floats).Sum(items[0], valid);
    __syncthreads();
    float sum_of_items = Reduce(storage.floats).Sum(items);
    __syncthreads();
    float largest = Reduce(storage.floats).Reduce(items[0], cuda::maximum<>{}, valid);
    __syncthreads();
    float product = Reduce(storage.floats).Reduce(items[0], [](float a, float b) { return a * b; });
    __syncthreads();
    Best mine = {items[0], thread};
    Best found = ReduceBest(storage.pairs).Reduce(mine, [](Best a, Best b) {
        return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
    });
    if (thread == 0) {
        out[0] = sum;
        out[1] = sum_of_valid;
        out[2] = sum_of_items;
        out[3] = largest;
        out[4] = product;
        *best = found.index;
    }
}

// Reduces over a three-dimensional block of 8 x 4 x 2 threads.
__global__ void reduce_three_dimensions(const int* x, int* out) {
    using Reduce = cub::BlockReduce<int, 8, cub::BLOCK_REDUCE_RAKING, 4, 2>;
    __shared__ Reduce::TempStorage storage;
    int thread = threadIdx.x + 8 * (threadIdx.y + 4 * threadIdx.z);
    int sum = Reduce(storage).Sum(x[thread]);
    if (thread == 0) *out = sum;
}

__global__ void reduce_warps(const float* x, float* out, int valid) {
    typedef cub::WarpReduce<float> Warp;
    typedef cub::WarpReduce<float, 8> Eight;
    __shared__ Warp::TempStorage warps[2];
    __shared__ Eight::TempStorage eights[8];
    int thread = threadIdx.x;
    float sum = Warp(warps[thread / 32]).Sum(x[thread]);
    float some = Warp(warps[thread / 32]).Sum(x[thread], valid);
    float least = Eight(eights[thread / 8]).Reduce(x[thread], cuda::minimum<>{});
    if (thread % 32 == 0) out[thread / 32] = sum, out[2 + thread / 32] = some;
    if (thread % 8 == 0) out[4 + thread / 8] = least;
}

template <int THREADS>
__global__ void scan_block(const int* x, int* inclusive, int* exclusive, int* running_maximum, int* by_items,
                           int* totals) {
    typedef cub::BlockScan<int, THREADS> Scan;
    __shared__ typename Scan::TempStorage storage;
    int thread = threadIdx.x, total, sum;
    Scan(storage).InclusiveSum(x[thread], sum, total);
    inclusive[thread] = sum;
    totals[thread] = total;
    __syncthreads();
    Scan(storage).ExclusiveSum(x[thread], sum);
    exclusive[thread] = sum;
    __syncthreads();
    Scan(storage).ExclusiveScan(x[thread], sum, -1000, cuda::maximum<>{});
    running_maximum[thread] = sum;
    __syncthreads();
    int items[2] = {x[2 * thread], x[2 * thread + 1]};
    Scan(storage).ExclusiveSum(items, items);
    by_items[2 * thread] = items[0], by_items[2 * thread + 1] = items[1];
}

__global__ void scan_warps(const int* x, int* out) {
    typedef cub::WarpScan<int, 16> Scan;
    __shared__ Scan::TempStorage storage[2];
    int sum, total;
    Scan(storage[threadIdx.x / 16]).InclusiveSum(x[threadIdx.x], sum, total);
    out[threadIdx.x] = sum + 1000 * total;
}

extern "C" void reduce_in_block(const float* x, float* out, int* best, int threads, int valid, cudaStream_t stream) {
    if (threads == 32) reduce_block<32><<<1, 32, 0, stream>>>(x, out, best, valid);
    if (threads == 48) reduce_block<48><<<1, 48, 0, stream>>>(x, out, best, valid);
    if (threads == 256) reduce_block<256><<<1, 256, 0, stream>>>(x, out, best, valid);
}
extern "C" void reduce_in_3d(const int* x, int* out, cudaStream_t stream) {
    reduce_three_dimensions<<<1, dim3(8, 4, 2), 0, stream>>>(x, out);
}
extern "C" void reduce_in_warps(const float* x, float* out, int valid, cudaStream_t stream) {
    reduce_warps<<<1, 64, 0, stream>>>(x, out, valid);
}
extern "C" void scan_in_block(const int* x, int* inclusive, int* exclusive, int* running_maximum, int* by_items,
                              int* totals, int threads, cudaStream_t stream) {
    if (threads == 40) scan_block<40><<<1, 40, 0, stream>>>(x, inclusive, exclusive, running_maximum, by_items, totals);
    if (threads == 128) {
        scan_block<128><<<1, 128, 0, stream>>>(x, inclusive, exclusive, running_maximum, by_items, totals);
    }
}
extern "C" void scan_in_warps(const int* x, int* out, cudaStream_t stream) { scan_warps<<<1, 32, 0, stream>>>(x, out); }
