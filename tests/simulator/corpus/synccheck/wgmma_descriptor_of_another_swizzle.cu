// A tile was copied with the 128-byte swizzle, but the descriptor of wgmma has the 64-byte swizzle.
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
        llmk::tma_load(tile, &map, &arrived, 0, 0, 0);  // expected finding: swizzle_differs
    }
    __syncthreads();
    llmk::mbarrier_wait_parity(&arrived, 0);
    const uint64_t b = llmk::make_smem_desc(tile);
#ifdef CLEAN
    const uint64_t a = b;
#else
    const uint64_t a = (b & ~(3ull << 62)) | 2ull << 62;
#endif
    float sums[32];
    llmk::wgmma_fence();
    llmk::wgmma_ss<__nv_bfloat16>(sums, a, b, 0);  // expected finding: swizzle_differs
    llmk::wgmma_commit_group();
    llmk::wgmma_wait_group<0>();
    for (int i = 0; i < 32; ++i) out[32 * threadIdx.x + i] = sums[i];
}

extern "C" void run(const __nv_bfloat16* x, float* out, int n, cudaStream_t stream) {
    CUtensorMap map;
    if (llmk::make_tensor_map(&map, x, 64, 64, 1, 64, 8, 64) != cudaSuccess) return;
    product<<<1, 128, 0, stream>>>(map, out);
}
