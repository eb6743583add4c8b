// Only one of the four warps waits for the copy of a tile before wgmma reads it.
// n = 512 elements
#include <cuda_runtime.h>
#include <cstdint>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
// Returns a matrix descriptor (K-major, no swizzle). The two core matrices of a group of 8 rows are 128 bytes apart;
// groups of 8 rows are 256 bytes apart.
__device__ uint64_t describe(const void* tile) { return address_of(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32; }
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
__device__ void initialize(uint64_t* barrier, unsigned count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count)); }
__device__ void arrive(uint64_t* barrier) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory"); }
__device__ void load(void* shared, const void* global, unsigned bytes, uint64_t* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: copy_not_awaited within_block
}
__device__ void wait_for(uint64_t* barrier, unsigned parity) { asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(address_of(barrier)), "r"(parity) : "memory"); }
// Computes d [64, 8] += a [64, 16] * b [16, 8].
__device__ __forceinline__ void multiply(float (&d)[4], const void* a, const void* b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(describe(a)), "l"(describe(b)) : "memory");  // expected finding: copy_not_awaited within_block
}
// clang-format on

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    __shared__ uint64_t full;
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) initialize(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) load(a, x, sizeof(a), &full);
    float d[4] = {};
#ifndef CLEAN
    if (threadIdx.x < 32)
#endif
        wait_for(&full, 0);
    fence();
    multiply(d, a, b);
    commit();
    wait();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { product<<<1, 128, 0, stream>>>(x, out, n); }
