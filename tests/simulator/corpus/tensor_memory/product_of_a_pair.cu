// A product of a pair of blocks (cta_group::2).
// n = 4096, product_of_a_pair<<<2, 128>>>(x, out)
#include "../tcgen05.cuh"

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<2>(&taken, 32, &complete);
    llmk::cluster_sync();  // both blocks have allocated columns and initialized mbarriers
    tcgen05::fill(a, x, tcgen05::kOnes);
    tcgen05::fill(b, x, tcgen05::kOnes);
    llmk::fence_proxy_async();
    llmk::cluster_sync();  // both blocks have written their operands
    const unsigned d = taken;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
        llmk::tcgen05_mma<2>(d, of_a, of_b, llmk::make_instr_desc<__nv_bfloat16>(256, 32), 0);
        llmk::tcgen05_commit<2>(&complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    float sums[32];
    llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset());
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::cluster_sync();  // both blocks have loaded
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<2>(d, 32);
}
