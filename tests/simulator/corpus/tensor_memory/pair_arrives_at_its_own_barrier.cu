// The second block says that its operands are there to its own barrier, and the first, which asks, waits for its own.
// n = 4096
#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"

__device__ void arrive_at(uint64_t* barrier, unsigned block) {
    // clang-format off
    asm volatile("{ .reg .b32 far; mapa.shared::cluster.u32 far, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far]; }" ::"r"(llmk::shared_address(barrier)), "r"(block) : "memory");
    // clang-format on
}
__device__ void wait_for(uint64_t* barrier) {
    // clang-format off
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" ::"r"(llmk::shared_address(barrier)) : "memory");  // finding: deadlock
    // clang-format on
}

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete, there;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::take_columns<2>(&taken, 32);
    if (threadIdx.x == 0) {
        llmk::make_barrier(&complete, 1);
        llmk::make_barrier(&there, 2);
        llmk::fence_barriers();
    }
    for (int i = threadIdx.x; i < 4096; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i];
    for (int i = threadIdx.x; i < 512; i += 128) b[i] = 0x3f803f80u + (unsigned)x[i];
    llmk::fence_async();
    llmk::meet_cluster();
    const unsigned d = taken;
    if (threadIdx.x == 0) {
#ifdef CLEAN
        arrive_at(&there, 0);
#else
        arrive_at(&there, blockIdx.x);
#endif
        if (blockIdx.x == 0) wait_for(&there);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::describe_operand(a), of_b = llmk::describe_operand(b);
        llmk::start_product<2>(d, of_a, of_b, llmk::describe_product<__nv_bfloat16>(256, 32), 0);
        llmk::tell_when_complete<2>(&complete);
    }
    __syncwarp();  // finding: deadlock
    wait_for(&complete);
    llmk::fence_after_meeting();
    float sums[32];
    llmk::load_columns(sums, d + llmk::lanes_of_warp());
    llmk::wait_for_columns();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::meet_cluster();
    if (threadIdx.x < 32) llmk::give_columns<2>(d, 32);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { product_of_a_pair<<<2, 128, 0, stream>>>(x, out); }
