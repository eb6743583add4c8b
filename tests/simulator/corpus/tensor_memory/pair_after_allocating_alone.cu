// Columns are taken by each block for itself, and the product is one of the pair.
// n = 4096
#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"

__global__ void __cluster_dims__(2, 1, 1) product_of_a_pair(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[512];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
#ifdef CLEAN
    if (threadIdx.x < 32) llmk::take_columns<2>(&taken, 32);
#else
    if (threadIdx.x < 32) llmk::take_columns<1>(&taken, 32);
#endif
    if (threadIdx.x == 0) {
        llmk::make_barrier(&complete, 1);
        llmk::fence_barriers();
    }
    for (int i = threadIdx.x; i < 4096; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i];
    for (int i = threadIdx.x; i < 512; i += 128) b[i] = 0x3f803f80u + (unsigned)x[i];
    llmk::fence_async();
    llmk::meet_cluster();
    const unsigned d = taken;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const uint64_t of_a = llmk::describe_operand(a), of_b = llmk::describe_operand(b);
        llmk::start_product<2>(d, of_a, of_b, llmk::describe_product<__nv_bfloat16>(256, 32), 0);  // finding: instruction_misused
        llmk::tell_when_complete<2>(&complete);
    }
    __syncwarp();
    llmk::wait(&complete, 0);
    llmk::fence_after_meeting();
    float sums[32];
    llmk::load_columns(sums, d + llmk::lanes_of_warp());
    llmk::wait_for_columns();
    for (int c = 0; c < 16; ++c) out[2048 * blockIdx.x + 16 * threadIdx.x + c] = sums[c];
    llmk::meet_cluster();
    if (threadIdx.x < 32) llmk::give_columns<2>(d, 32);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { product_of_a_pair<<<2, 128, 0, stream>>>(x, out); }
