// The wait has the wrong parity: that of the phase before the first one. That phase counts as complete, so the wait
// returns at once.
// n = 128 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void initialize(unsigned long long* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}
__device__ void expect(unsigned long long* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}
__device__ void load(void* shared, const void* global, unsigned bytes, unsigned long long* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: within_warp within_block copy_not_awaited copy_at_exit
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) initialize(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&full, sizeof(data));
        load(data, x, sizeof(data), &full);
    }
#ifdef CLEAN
    wait(&full, 0);
#else
    wait(&full, 1);
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: within_warp within_block copy_not_awaited
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 128, 0, stream>>>(x, out, n); }
