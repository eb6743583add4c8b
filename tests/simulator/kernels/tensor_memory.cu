// mma, loads, stores and copies of tensor memory for test_tensor_memory.py: operands are bytes of shared
// memory, descriptors and shapes come from the host.
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"

constexpr int kColumns = 256, kImage = 64 * 1024;

struct Scratch {
    uint64_t complete;
    unsigned taken;
};

template <int BLOCKS>
__device__ unsigned begin(unsigned char* tiles, const unsigned* image, Scratch& scratch, unsigned columns) {
    if (threadIdx.x < 32) llmk::tcgen05_alloc<BLOCKS>(&scratch.taken, columns);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&scratch.complete, 1);
        llmk::fence_mbarrier_init();
    }
    image += blockIdx.x * (kImage / 4);
    for (int i = threadIdx.x; i < kImage / 4; i += 128) reinterpret_cast<unsigned*>(tiles)[i] = image[i];
    llmk::fence_proxy_async();
    if (BLOCKS == 2)
        llmk::cluster_sync();
    else
        __syncthreads();
    return scratch.taken;
}

// Stores all accumulators of a block, [128][kColumns].
__device__ void store_all(unsigned d, const unsigned* c) {
    c += (blockIdx.x * 128 + threadIdx.x) * kColumns;
    for (int i = 0; i < kColumns; ++i) {
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(d + llmk::tmem_lane_offset() + i),
                     "r"(c[i])
                     : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
__device__ void load_all(unsigned d, unsigned* out) {
    out += (blockIdx.x * 128 + threadIdx.x) * kColumns;
    for (int first = 0; first < kColumns; first += 32) {
        float values[32];
        llmk::tcgen05_ld(values, d + llmk::tmem_lane_offset() + first);
        llmk::tcgen05_wait_ld();
        for (int i = 0; i < 32; ++i) out[first + i] = __float_as_uint(values[i]);
    }
}

template <int BLOCKS>
__device__ void meet() {
    llmk::tcgen05_fence_before_thread_sync();
    if (BLOCKS == 2)
        llmk::cluster_sync();
    else
        __syncthreads();
    llmk::tcgen05_fence_after_thread_sync();
}

// Multiplies A and B. a, b: descriptors without addresses. a_start, b_start: offsets in `image`. If `words` is not
// null, A comes from tensor memory, and `words` is its content, [128][8].
template <int BLOCKS>
__device__ void product(const unsigned* image, const unsigned* words, const unsigned* c, unsigned* out, uint64_t a,
                        int a_start, uint64_t b, int b_start, unsigned kind, int adds) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ Scratch scratch;
    const unsigned columns = words ? 512 : kColumns;
    const unsigned d = begin<BLOCKS>(tiles, image, scratch, columns);
    store_all(d, c);
    if (words) {
        const unsigned* own = words + (blockIdx.x * 128 + threadIdx.x) * 8;
        asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(
                         d + kColumns + llmk::tmem_lane_offset()),
                     "r"(own[0]), "r"(own[1]), "r"(own[2]), "r"(own[3]), "r"(own[4]), "r"(own[5]), "r"(own[6]),
                     "r"(own[7])
                     : "memory");
        asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    }
    meet<BLOCKS>();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        a |= (llmk::shared_address(tiles) + a_start) >> 4;
        b |= (llmk::shared_address(tiles) + b_start) >> 4;
        if (!words) {
            llmk::tcgen05_mma<BLOCKS>(d, a, b, kind, adds);
        } else if (BLOCKS == 1) {
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }" ::
                    "r"(d),
                "r"(d + kColumns), "l"(b), "r"(kind), "r"(adds)
                : "memory");
        } else {
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], [%1], %2, %3, p; }" ::
                    "r"(d),
                "r"(d + kColumns), "l"(b), "r"(kind), "r"(adds)
                : "memory");
        }
        llmk::tcgen05_commit<BLOCKS>(&scratch.complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&scratch.complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    load_all(d, out);
    meet<BLOCKS>();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<BLOCKS>(d, columns);
}

__global__ void product_of_one(const unsigned* image, const unsigned* words, const unsigned* c, unsigned* out,
                               uint64_t a, int a_start, uint64_t b, int b_start, unsigned kind, int adds,
                               int from_words) {
    product<1>(image, from_words ? words : nullptr, c, out, a, a_start, b, b_start, kind, adds);
}
__global__ void __cluster_dims__(2, 1, 1)
    product_of_two(const unsigned* image, const unsigned* words, const unsigned* c, unsigned* out, uint64_t a,
                   int a_start, uint64_t b, int b_start, unsigned kind, int adds, int from_words) {
    product<2>(image, from_words ? words : nullptr, c, out, a, a_start, b, b_start, kind, adds);
}

extern "C" void run_product(const unsigned* image, const unsigned* words, const unsigned* c, unsigned* out, long long a,
                            int a_start, long long b, int b_start, int kind, int adds, int from_words, int blocks,
                            cudaStream_t stream) {
    auto kernel = blocks == 2 ? product_of_two : product_of_one;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kImage);
    kernel<<<blocks, 128, kImage, stream>>>(image, words, c, out, a, a_start, b, b_start, static_cast<unsigned>(kind),
                                            adds, from_words);
}

// Writes what each load shape returns if lane l and column c of tensor memory hold 1000 l + c. out: [shape][thread][8];
// each shape is 16 columns wide.
__global__ void shapes(const unsigned* c, unsigned* out) {
    __shared__ Scratch scratch;
    if (threadIdx.x < 32) llmk::tcgen05_alloc<1>(&scratch.taken, kColumns);
    __syncthreads();
    const unsigned d = scratch.taken, own = d + llmk::tmem_lane_offset();
    store_all(d, c);
    unsigned r[8];
    auto put = [&](int shape) {
        for (int i = 0; i < 8; ++i) out[(shape * 128 + threadIdx.x) * 8 + i] = r[i];
    };
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(own));
    llmk::tcgen05_wait_ld();
    put(0);
    asm volatile("tcgen05.ld.sync.aligned.16x64b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(own + (16u << 16)));
    llmk::tcgen05_wait_ld();
    put(1);
    asm volatile("tcgen05.ld.sync.aligned.16x128b.x4.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(own));
    llmk::tcgen05_wait_ld();
    put(2);
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(own + (16u << 16) + 16));
    llmk::tcgen05_wait_ld();
    put(3);
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, kColumns);
}
extern "C" void run_shapes(const unsigned* c, unsigned* out, cudaStream_t stream) {
    shapes<<<1, 128, 0, stream>>>(c, out);
}

// Copies 128 rows of 32 bytes to columns 0-7 of tensor memory, and 128 rows of 16 bytes to columns 8-11. Rows are
// K-major without a swizzle.
__global__ void copies(const unsigned* image, const unsigned* c, unsigned* out) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ Scratch scratch;
    const unsigned d = begin<1>(tiles, image, scratch, kColumns);
    store_all(d, c);
    meet<1>();
    if (threadIdx.x == 0) {
        const uint64_t from = llmk::shared_address(tiles) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32 | 1ull << 46;
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(from) : "memory");
        asm volatile("tcgen05.cp.cta_group::1.128x128b [%0], %1;" ::"r"(d + 8), "l"(from) : "memory");
        llmk::tcgen05_commit<1>(&scratch.complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(&scratch.complete, 0);
    llmk::tcgen05_fence_after_thread_sync();
    load_all(d, out);
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(d, kColumns);
}
extern "C" void run_copies(const unsigned* image, const unsigned* c, unsigned* out, cudaStream_t stream) {
    cudaFuncSetAttribute(copies, cudaFuncAttributeMaxDynamicSharedMemorySize, kImage);
    copies<<<1, 128, kImage, stream>>>(image, c, out);
}
