// The second block arrives at its own mbarrier, but the first block, which issues the mma, waits for another one.
// n = 4096, product_of_a_pair<<<2, 128>>>(x, out)
#include "../tcgen05.cuh"

__device__ void mbarrier_arrive_cluster(uint64_t* barrier, unsigned block) {
    // clang-format off
    asm volatile("{ .reg .b32 far; mapa.shared::cluster.u32 far, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far]; }" ::"r"(llmk::shared_address(barrier)), "r"(block) : "memory");
    // clang-format on
}
__device__ void wait_for(uint64_t* barrier) {
    // clang-format off
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(llmk::shared_address(barrier)) : "memory");  // expected finding: deadlock
    // clang-format on
}

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete, there;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::tcgen05_alloc<2>(&taken, 32);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&complete, 1);
        llmk::mbarrier_init(&there, 2);
        llmk::fence_mbarrier_init();
    }
    tcgen05::fill(a, x, tcgen05::kOnes);
    tcgen05::fill(b, x, tcgen05::kOnes);
    llmk::fence_proxy_async();
    llmk::cluster_sync();
    const unsigned d = taken;
    if (threadIdx.x == 0) {
#ifdef CLEAN
        mbarrier_arrive_cluster(&there, 0);
#else
        mbarrier_arrive_cluster(&there, blockIdx.x);
#endif
        if (blockIdx.x == 0) wait_for(&there);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
        llmk::tcgen05_mma<2>(d, of_a, of_b, llmk::make_instr_desc<__nv_bfloat16>(256, 32), 0);
        llmk::tcgen05_commit<2>(&complete);
    }
    __syncwarp();  // expected finding: deadlock
    wait_for(&complete);
    llmk::tcgen05_fence_after_thread_sync();
    float sums[32];
    llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset());
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::cluster_sync();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<2>(d, 32);
}
