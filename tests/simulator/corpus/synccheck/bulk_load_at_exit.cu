// One more tile is loaded than used, and the block exits while the load is in flight.
// n = 512 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void load(void* shared, const void* global, unsigned bytes, unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: copy_at_exit
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra WAIT; }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// clang-format on

__global__ void pass_on(const float* x, float* out, int n) {
    __shared__ __align__(128) float tiles[2][128];
    __shared__ unsigned long long full[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full[i])));
        load(tiles[0], x, 512, &full[0]);
    }
    __syncthreads();
    for (int tile = 0; tile < n / 128; ++tile) {
#ifdef CLEAN
        const bool more = tile + 1 < n / 128;
#else
        const bool more = true;
#endif
        const int next = (tile + 1) % (n / 128);
        if (threadIdx.x == 0 && more) load(tiles[(tile + 1) % 2], x + next * 128, 512, &full[(tile + 1) % 2]);
        wait(&full[tile % 2], tile / 2 & 1);
        out[tile * 128 + threadIdx.x] = tiles[tile % 2][threadIdx.x];
        __syncthreads();
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { pass_on<<<1, 128, 0, stream>>>(x, out, n); }
