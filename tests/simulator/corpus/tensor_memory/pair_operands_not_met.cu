// The first block issues the mma when its own operands have arrived, without waiting for those of the second block.
// n = 4096, product_of_a_pair<<<2, 128>>>(x, out)
#include "../tcgen05.cuh"

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<2>(&taken, 32, &complete);
    // Wait until both blocks have allocated columns and initialized mbarriers.
    llmk::cluster_sync();
    for (int i = threadIdx.x; i < 4096; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i];  // expected finding: within_cluster operands_not_awaited
    for (int i = threadIdx.x; i < 512; i += 128) b[i] = 0x3f803f80u + (unsigned)x[i];   // expected finding: within_cluster operands_not_awaited
    llmk::fence_proxy_async();
#ifdef CLEAN
    llmk::cluster_sync();
#else
    __syncthreads();
#endif
    const unsigned d = taken;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
        constexpr unsigned kind = llmk::make_instr_desc<__nv_bfloat16>(256, 32);
        llmk::tcgen05_mma<2>(d, of_a, of_b, kind, 0);  // expected finding: within_cluster operands_not_awaited
        llmk::tcgen05_commit<2>(&complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    float sums[32];
    llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset());
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::cluster_sync();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<2>(d, 32);
}
