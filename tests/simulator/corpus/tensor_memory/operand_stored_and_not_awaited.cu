// A warp stores A to tensor memory, and the mma starts without tcgen05.wait::st.
// n = 4096, product<<<1, 128>>>(x, out)
#include "../tcgen05.cuh"

// clang-format off
__device__ void store_ones(unsigned address) {
    unsigned one = 0x3f803f80u;
    asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %1, %1, %1, %1, %1, %1, %1};" ::"r"(address), "r"(one) : "memory");  // expected finding: tensor_transfer_not_awaited
}
__device__ void wait_for_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
__device__ void start(unsigned d, unsigned a, uint64_t b, unsigned kind) {
    asm volatile("tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, 0;" ::"r"(d), "r"(a), "l"(b), "r"(kind) : "memory");  // expected finding: tensor_transfer_not_awaited
}
// clang-format on

__global__ void product(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[128], b[1024];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<1>(&taken, 64, &complete);
    a[threadIdx.x] = 0;
    tcgen05::fill(b, x, tcgen05::kOnes);
    llmk::fence_proxy_async();
    __syncthreads();
    const unsigned d = taken, own = d + llmk::tmem_lane_offset();
    const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
    store_ones(d + 32 + llmk::tmem_lane_offset());
#ifdef CLEAN
    wait_for_stores();
#endif
    llmk::tcgen05_fence_before_thread_sync();
    __syncthreads();
    llmk::tcgen05_fence_after_thread_sync();
    constexpr unsigned kind = llmk::make_instr_desc<__nv_bfloat16>(128, 32);
    if (threadIdx.x == 0) {
        start(d, d + 32, of_b, kind);
        llmk::tcgen05_commit<1>(&complete);
    }
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    tcgen05::store_columns(out, own);
#ifndef CLEAN
    wait_for_stores();
#endif
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 64);
}
