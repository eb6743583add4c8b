// The last tile is loaded and stored completely, although the array ends inside it.
// n = 200 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void load(void* shared, const void* global, unsigned bytes, unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: out_of_bounds
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra WAIT; }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
__device__ void store(void* global, const void* shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(address_of(shared)), "r"(bytes) : "memory");  // expected finding: out_of_bounds
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// clang-format on

__global__ void through_shared(const float* x, float* out, int n) {
    __shared__ __align__(128) float tile[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)));
        for (int first = 0; first < n; first += 128) {
            unsigned bytes = 512;
#ifdef CLEAN
            if (first + 128 > n) bytes = (n - first) * 4;
#endif
            load(tile, x + first, bytes, &full);
            wait(&full, first / 128 & 1);
            store(out + first, tile, bytes);
        }
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { through_shared<<<1, 32, 0, stream>>>(x, out, n); }
