// The next product overwrites accumulators that other warps may still load.
// n = 4096
#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"

#define START_PRODUCT llmk::start_product<1>(d, of_a, of_b, kind, 0)

__global__ void product(const float* x, float* out) {
    __shared__ __align__(1024) unsigned a[4096], b[1024];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::take_columns<1>(&taken, 32);
    if (threadIdx.x == 0) {
        llmk::make_barrier(&complete, 1);
        llmk::fence_barriers();
    }
    for (int i = threadIdx.x; i < 4096; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i];
    for (int i = threadIdx.x; i < 1024; i += 128) b[i] = 0x3f803f80u + (unsigned)x[i];
    llmk::fence_async();
    __syncthreads();
    const unsigned d = taken;
    const unsigned own = d + llmk::lanes_of_warp();
    const uint64_t of_a = llmk::describe_operand(a), of_b = llmk::describe_operand(b);
    constexpr unsigned kind = llmk::describe_product<__nv_bfloat16>(128, 32);
    if (threadIdx.x == 0) {
        llmk::start_product<1>(d, of_a, of_b, kind, 0);
        llmk::tell_when_complete<1>(&complete);
    }
    llmk::wait(&complete, 0);
    llmk::fence_after_meeting();
    float sums[32];
    llmk::load_columns(sums, own);  // finding: tensor_memory_race tensor_product_not_awaited tensor_transfer_not_awaited
    llmk::wait_for_columns();
    for (int c = 0; c < 32; ++c) out[32 * threadIdx.x + c] = sums[c];
    llmk::fence_before_meeting();
#ifdef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        llmk::fence_after_meeting();
        START_PRODUCT;  // finding: tensor_memory_race tensor_product_not_awaited tensor_transfer_not_awaited
        llmk::tell_when_complete<1>(&complete);
    }
    llmk::wait(&complete, 1);
    __syncthreads();
    if (threadIdx.x < 32) llmk::give_columns<1>(d, 32);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { product<<<1, 128, 0, stream>>>(x, out); }
