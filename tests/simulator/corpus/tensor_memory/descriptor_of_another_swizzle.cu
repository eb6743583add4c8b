// A tile was copied with the 128-byte swizzle, but the descriptor of tcgen05 has the 64-byte swizzle.
// n = 4096 elements
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/tcgen05.cuh"

__global__ void product(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ __align__(1024) __nv_bfloat16 tile[128 * 64];
    __shared__ uint64_t arrived, complete;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::tcgen05_alloc<1>(&taken, 32);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&arrived, 1);
        llmk::mbarrier_init(&complete, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();
    const unsigned d = taken;
    if (threadIdx.x == 0) {
        llmk::mbarrier_arrive_expect_tx(&arrived, sizeof tile);
        llmk::tma_load(tile, &map, &arrived, 0, 0, 0);  // expected finding: swizzle_differs
        llmk::mbarrier_wait_parity(&arrived, 0);
        const uint64_t b = llmk::make_tcgen05_smem_desc(tile);
#ifdef CLEAN
        const uint64_t a = b;
#else
        const uint64_t a = (b & ~(7ull << 61)) | 4ull << 61;
#endif
        llmk::tcgen05_mma<1>(d, a, b, llmk::make_instr_desc<__nv_bfloat16>(128, 32), 0);  // expected finding: swizzle_differs
        llmk::tcgen05_commit<1>(&complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    float sums[32];
    llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset());
    llmk::tcgen05_wait_ld();
    for (int i = 0; i < 32; ++i) out[32 * threadIdx.x + i] = sums[i];
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 32);
}

extern "C" void run(const __nv_bfloat16* x, float* out, int n, cudaStream_t stream) {
    CUtensorMap map;
    if (llmk::make_tensor_map(&map, x, 64, 64, 1, 64, 8, 128) != cudaSuccess) return;
    product<<<1, 128, 0, stream>>>(map, out);
}
