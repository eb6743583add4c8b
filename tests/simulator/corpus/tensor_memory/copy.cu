// A copy from shared memory to tensor memory by tcgen05.cp.
// n = 4096, copies<<<1, 128>>>(x, out)
#include "../tcgen05.cuh"

__global__ void copies(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[1024];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    tcgen05::prepare<1>(&taken, 32, &complete);
    tcgen05::fill(a, x, 0);
    llmk::fence_proxy_async();
    __syncthreads();
    const unsigned d = taken, own = d + llmk::tmem_lane_offset();
    if (threadIdx.x == 0) {
        const uint64_t from = llmk::shared_address(a) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46;  // rows of 32 bytes
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(from) : "memory");
        llmk::tcgen05_commit<1>(&complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    unsigned r[8];
    // clang-format off
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(own));
    // clang-format on
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 32; ++c) out[32 * threadIdx.x + c] = (float)r[c % 8];
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 32);
}
