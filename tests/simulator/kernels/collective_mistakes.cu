// Each kernel has one mistake in the use of CUB, WMMA, PTX or cooperative groups. The test calls the kernels through
// their launchers.
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;
namespace cg = cooperative_groups;

__global__ void storage_used_twice(const float* x, float* out) {
    typedef cub::BlockReduce<float, 128> Reduce;
    __shared__ Reduce::TempStorage storage;
    float sum = Reduce(storage).Sum(x[threadIdx.x]);
    float squares = Reduce(storage).Sum(x[threadIdx.x] * x[threadIdx.x]);  // mistake: no __syncthreads() before
    if (threadIdx.x == 0) out[0] = sum, out[1] = squares;
}

__global__ void result_read_too_early(const half* a, float* out) {
    __shared__ __align__(32) float tile[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, a, 16);
    wmma::mma_sync(sums, left, right, sums);
    wmma::store_matrix_sync(tile, sums, 16, wmma::mem_row_major);
    for (int i = threadIdx.x; i < 256; i += 32) out[i] = tile[i];  // mistake: no __syncwarp() before this read
}

__global__ void fragment_past_the_end(const half* a, float* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::load_matrix_sync(left, a + 16, 16);  // mistake: one row too far
    out[threadIdx.x] = __half2float(left.x[0]);
}

__global__ void matrix_past_the_end(const half* a, float* out) {
    __shared__ __align__(16) half tile[8 * 8];
    for (int i = threadIdx.x; i < 64; i += 32) tile[i] = a[i];
    __syncwarp();
    unsigned r0, r1;
    unsigned address = (unsigned)__cvta_generic_to_shared(&tile[(threadIdx.x % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address));
    out[threadIdx.x] = (float)(r0 + r1);
}

__global__ void copy_not_waited_for(const float* x, float* out) {
    __shared__ __align__(16) float tile[128];
    __pipeline_memcpy_async(&tile[4 * threadIdx.x], &x[4 * threadIdx.x], 16);
    __pipeline_commit();
    __syncthreads();  // mistake: no wait for the copies, which may still be in flight
    out[threadIdx.x] = tile[127 - threadIdx.x];
    __pipeline_wait_prior(0);
}

__global__ void wait_without_barrier(const float* x, float* out) {
    __shared__ __align__(16) float tile[128];
    __pipeline_memcpy_async(&tile[4 * threadIdx.x], &x[4 * threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);  // mistake: no __syncthreads() after this wait for the thread's own copies
    out[threadIdx.x] = tile[127 - threadIdx.x];
}

__global__ void tile_is_not_a_block(const float* x, float* out) {
    __shared__ float tile[64];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    tile[threadIdx.x] = x[threadIdx.x];
    warp.sync();  // mistake: synchronizes only one of two warps
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void half_a_warp_multiplies(const half* a, float* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    wmma::fill_fragment(left, __float2half(1.0f));
    wmma::fill_fragment(right, __float2half(1.0f));
    if (threadIdx.x < 16) {
        wmma::mma_sync(sums, left, right, sums);
    } else {
        __syncwarp();
    }
    out[threadIdx.x] = sums.x[0];
}

extern "C" void storage(const float* x, float* out, cudaStream_t s) { storage_used_twice<<<1, 128, 0, s>>>(x, out); }
extern "C" void early(const half* a, float* out, cudaStream_t s) { result_read_too_early<<<1, 32, 0, s>>>(a, out); }
extern "C" void fragment(const half* a, float* out, cudaStream_t s) { fragment_past_the_end<<<1, 32, 0, s>>>(a, out); }
extern "C" void matrix(const half* a, float* out, cudaStream_t s) { matrix_past_the_end<<<1, 32, 0, s>>>(a, out); }
extern "C" void unwaited(const float* x, float* out, cudaStream_t s) { copy_not_waited_for<<<1, 32, 0, s>>>(x, out); }
extern "C" void unordered(const float* x, float* out, cudaStream_t s) { wait_without_barrier<<<1, 32, 0, s>>>(x, out); }
extern "C" void tile(const float* x, float* out, cudaStream_t s) { tile_is_not_a_block<<<1, 64, 0, s>>>(x, out); }
extern "C" void divergent(const half* a, float* out, cudaStream_t s) {
    half_a_warp_multiplies<<<1, 32, 0, s>>>(a, out);
}
