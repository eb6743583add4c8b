// Threads rewrite a copied tile with the swizzle that the descriptor requires. So wgmma reads the threads' writes, not
// the copy's.
// n = 4096 elements
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

__global__ void product(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ __align__(1024) __nv_bfloat16 tile[64 * 64];
    __shared__ uint64_t arrived;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&arrived, 1);
        llmk::fence_mbarrier_init();
        llmk::mbarrier_arrive_expect_tx(&arrived, sizeof tile);
        llmk::tma_load(tile, &map, &arrived, 0, 0, 0);
    }
    __syncthreads();
    llmk::mbarrier_wait_parity(&arrived, 0);
    // Converts swizzled rows of 128 bytes to four tiles of 16 columns (two core matrices) without a swizzle.
    const int row = threadIdx.x % 64, half = threadIdx.x / 64;
    uint4 pieces[4];
    for (int c = 0; c < 4; ++c) pieces[c] = reinterpret_cast<const uint4*>(tile)[8 * row + ((4 * half + c) ^ (row % 8))];
    __syncthreads();
    for (int c = 0; c < 4; ++c) reinterpret_cast<uint4*>(tile)[(4 * half + c) * 64 + row] = pieces[c];
    llmk::fence_proxy_async();
    __syncthreads();
    // A core matrix of 8 rows is 128 bytes, the next 8 rows follow it, and the next 8 columns are 1024 bytes away.
    const uint64_t a = (llmk::shared_address(tile) >> 4) | 1024ull >> 4 << 16 | 128ull >> 4 << 32;
    float sums[32];
    llmk::wgmma_fence();
    llmk::wgmma_ss<__nv_bfloat16>(sums, a, a, 0);
    llmk::wgmma_commit_group();
    llmk::wgmma_wait_group<0>();
    for (int i = 0; i < 32; ++i) out[32 * threadIdx.x + i] = sums[i];
}

extern "C" void run(const __nv_bfloat16* x, float* out, int n, cudaStream_t stream) {
    CUtensorMap map;
    if (llmk::make_tensor_map(&map, x, 64, 64, 1, 64, 8, 64) != cudaSuccess) return;
    product<<<1, 128, 0, stream>>>(map, out);
}
