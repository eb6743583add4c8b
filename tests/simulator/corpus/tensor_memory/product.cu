// A product of two tiles by tcgen05.mma.
// n = 4096, product<<<1, 128>>>(x, out)
#include "../tcgen05.cuh"

__global__ void product(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[1024];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<1>(&taken, 32, &complete);
    tcgen05::fill(a, x, tcgen05::kOnes);
    tcgen05::fill(b, x, tcgen05::kOnes);
    llmk::fence_proxy_async();
    __syncthreads();
    const unsigned d = taken, own = d + llmk::tmem_lane_offset();
    const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
    constexpr unsigned kind = llmk::make_instr_desc<__nv_bfloat16>(128, 32);
    if (threadIdx.x == 0) {
        llmk::tcgen05_mma<1>(d, of_a, of_b, kind, 0);
        llmk::tcgen05_commit<1>(&complete);
    }
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    tcgen05::store_columns(out, own);
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 32);
}
