// wgmma.wait_group does not wait for a wgmma that was not committed to a group.
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
// Computes d [64, 8] += a [64, 16] * b [16, 8].
__device__ __forceinline__ void multiply(float (&d)[4], const void* a, const void* b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(describe(a)), "l"(describe(b)) : "memory");  // expected finding: accumulator_not_awaited
}
// clang-format on

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    for (int i = threadIdx.x; i < 512; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i % n];
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, a, b);
#ifdef CLEAN
    commit();
#endif
    wait();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];  // expected finding: accumulator_not_awaited
    commit();
    wait();
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { product<<<1, 128, 0, stream>>>(x, out, n); }
