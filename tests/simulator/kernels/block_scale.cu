// Block-scaled tcgen05.mma of each kind, for test_block_scale.py. The test chooses operands and scale factors.
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05_block_scale.cuh"

constexpr int kColumns = 256, kImage = 64 * 1024, kAScales = 256, kBScales = 260;

// image: bytes of shared memory. a at 0, b at 16 KB, 512 bytes of A's scales at 48 KB, and 1,024 of B's scales after it.
// All warps store A's scales. If spoiled >= 0, the last warp stores a different last byte of row `spoiled`.
__global__ void product(const unsigned* image, const unsigned* c, unsigned* out, uint64_t a, uint64_t b,
                        unsigned instruction, int adds, int form, int spoiled) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    if (threadIdx.x < 32) llmk::tcgen05_alloc<1>(&taken, 512);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&complete, 1);
        llmk::fence_mbarrier_init();
    }
    for (int i = threadIdx.x; i < kImage / 4; i += 128) reinterpret_cast<unsigned*>(tiles)[i] = image[i];
    llmk::fence_proxy_async();
    __syncthreads();
    const unsigned d = taken, own = d + llmk::tmem_lane_offset();
    for (int i = 0; i < kColumns; ++i)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(own + i),
                     "r"(c[threadIdx.x * kColumns + i])
                     : "memory");
    for (int c = 0; c < 4 && spoiled >= 0; ++c) {
        unsigned word = image[48 * 1024 / 4 + threadIdx.x % 32 * 4 + c];
        if (threadIdx.x == 96 + spoiled && c == 0) word ^= 0x01000000;
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(own + kAScales + c), "r"(word)
                     : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    llmk::tcgen05_fence_before_thread_sync();
    __syncthreads();
    llmk::tcgen05_fence_after_thread_sync();
    if (threadIdx.x == 0) {
        if (spoiled < 0) llmk::tcgen05_cp_32x128b_warpx4(d + kAScales, llmk::make_scale_smem_desc(tiles + 48 * 1024));
        llmk::tcgen05_cp_32x128b_warpx4(d + kBScales, llmk::make_scale_smem_desc(tiles + 48 * 1024 + 512));
        llmk::tcgen05_cp_32x128b_warpx4(d + kBScales + 4, llmk::make_scale_smem_desc(tiles + 48 * 1024 + 1024));
        a |= llmk::shared_address(tiles) >> 4;
        b |= (llmk::shared_address(tiles) + 16 * 1024) >> 4;
        const unsigned a_scales = d + kAScales, b_scales = d + kBScales;
        if (form == 0)
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),
                "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(adds)
                : "memory");
        if (form == 1)
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(
                    d),
                "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(adds)
                : "memory");
        if (form == 2)
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%0], %1, %2, %3, [%4], [%5], p; }" ::
                    "r"(d),
                "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(adds)
                : "memory");
        if (form == 3)
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32 [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(
                    d),
                "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(adds)
                : "memory");
        if (form == 4)
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(
                    d),
                "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(adds)
                : "memory");
        if (form == 5)
            llmk::tcgen05_mma_mxf4nvf4(d, a, b, instruction, a_scales, b_scales, static_cast<unsigned>(adds));
        llmk::tcgen05_commit<1>(&complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    for (int first = 0; first < kColumns; first += 32) {
        float values[32];
        llmk::tcgen05_ld(values, own + first);
        llmk::tcgen05_wait_ld();
        for (int i = 0; i < 32; ++i) out[threadIdx.x * kColumns + first + i] = __float_as_uint(values[i]);
    }
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, 512);
}

extern "C" void run_product(const unsigned* image, const unsigned* c, unsigned* out, long long a, long long b,
                            int instruction, int adds, int form, int spoiled, cudaStream_t stream) {
    cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, kImage);
    product<<<1, 128, kImage, stream>>>(image, c, out, a, b, static_cast<unsigned>(instruction), adds, form, spoiled);
}
