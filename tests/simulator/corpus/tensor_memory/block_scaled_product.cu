// A block-scaled product, whose scale factors are copied to tensor memory. Threads then overwrite shared memory that
// the copies do not read.
// n = 4096, product<<<1, 128>>>(x, out)
#include "../tcgen05.cuh"
#include "llmk/tcgen05_block_scale.cuh"

__global__ void product(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[1024];
    __shared__ __align__(16) unsigned scales[512];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<1>(&taken, 64, &complete);
    tcgen05::fill(a, x, tcgen05::kFp4);
    tcgen05::fill(b, x, tcgen05::kFp4);
    for (int i = threadIdx.x; i < 512; i += 128) scales[i] = 0x38383838u;
    llmk::fence_proxy_async();
    __syncthreads();
    const unsigned d = taken, own = d + llmk::tmem_lane_offset(), a_scales = d + 32, b_scales = d + 36;
    const uint64_t of_a = llmk::make_tcgen05_smem_desc(a), of_b = llmk::make_tcgen05_smem_desc(b);
    const uint64_t from = llmk::make_scale_smem_desc(scales);
    constexpr unsigned kind = llmk::make_instr_desc_mxf4nvf4(128, 32);
    if (threadIdx.x == 0) {
        llmk::tcgen05_cp_32x128b_warpx4(a_scales, from);
        llmk::tcgen05_cp_32x128b_warpx4(b_scales, from);
        llmk::tcgen05_mma_mxf4nvf4(d, of_a, of_b, kind, a_scales, b_scales, 0);
        llmk::tcgen05_commit<1>(&complete);
    }
    __syncthreads();
    scales[128 + threadIdx.x] = 0;
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    tcgen05::store_columns(out, own);
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 64);
}
