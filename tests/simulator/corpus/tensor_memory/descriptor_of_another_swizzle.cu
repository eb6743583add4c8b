// A tile that a tensor map with the 128-byte swizzle has filled is read by a descriptor of tcgen05 that says 64 bytes.
// n = 4096
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/tcgen05.cuh"

__global__ void product(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ __align__(1024) __nv_bfloat16 tile[128 * 64];
    __shared__ uint64_t arrived, complete;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::take_columns<1>(&taken, 32);
    if (threadIdx.x == 0) {
        llmk::make_barrier(&arrived, 1);
        llmk::make_barrier(&complete, 1);
        llmk::fence_barriers();
    }
    __syncthreads();
    const unsigned d = taken;
    if (threadIdx.x == 0) {
        llmk::arrive_and_expect(&arrived, sizeof tile);
        llmk::load_box(tile, &map, &arrived, 0, 0, 0);  // finding: swizzle_differs
        llmk::wait(&arrived, 0);
        const uint64_t b = llmk::describe_operand(tile);
#ifdef CLEAN
        const uint64_t a = b;
#else
        const uint64_t a = (b & ~(7ull << 61)) | 4ull << 61;
#endif
        llmk::start_product<1>(d, a, b, llmk::describe_product<__nv_bfloat16>(128, 32), 0);  // finding: swizzle_differs
        llmk::tell_when_complete<1>(&complete);
    }
    __syncwarp();
    llmk::wait(&complete, 0);
    llmk::fence_after_meeting();
    float sums[32];
    llmk::load_columns(sums, d + llmk::lanes_of_warp());
    llmk::wait_for_columns();
    for (int i = 0; i < 32; ++i) out[32 * threadIdx.x + i] = sums[i];
    __syncthreads();
    if (threadIdx.x < 32) llmk::give_columns<1>(d, 32);
}

extern "C" void run(const __nv_bfloat16* x, float* out, int n, cudaStream_t stream) {
    CUtensorMap map;
    if (llmk::describe_tensor(&map, x, 64, 64, 1, 64, 8, 128) != cudaSuccess) return;
    product<<<1, 128, 0, stream>>>(map, out);
}
