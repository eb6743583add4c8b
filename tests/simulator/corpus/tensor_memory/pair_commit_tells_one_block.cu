// tcgen05.commit of the pair's mma arrives only at the first block's mbarrier, but the second block waits for its own.
// n = 4096, product_of_a_pair<<<2, 128>>>(x, out)
#include "../tcgen05.cuh"

__device__ void wait_for(uint64_t* barrier) {
    // clang-format off
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(llmk::shared_address(barrier)) : "memory");  // expected finding: deadlock
    // clang-format on
}

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<2>(&taken, 32, &complete);
    tcgen05::fill(a, x, tcgen05::kOnes);
    tcgen05::fill(b, x, tcgen05::kOnes);
    llmk::fence_proxy_async();
    llmk::cluster_sync();
    const unsigned d = taken;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
        llmk::tcgen05_mma<2>(d, of_a, of_b, llmk::make_instr_desc<__nv_bfloat16>(256, 32), 0);
#ifdef CLEAN
        llmk::tcgen05_commit<2>(&complete);
#else
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(llmk::shared_address(&complete)) : "memory");
#endif
    }
    __syncwarp();
    wait_for(&complete);
    llmk::tcgen05_fence_after_thread_sync();
    float sums[32];
    llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset());
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::cluster_sync();  // expected finding: deadlock
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<2>(d, 32);
}
