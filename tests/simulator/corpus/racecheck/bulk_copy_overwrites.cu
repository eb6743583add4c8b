// The next tile is loaded into a buffer that consumers may still read, because an "empty" mbarrier is missing.
// n = 512 elements
#include <cuda_runtime.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void initialize(unsigned long long* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}
__device__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ void expect(unsigned long long* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}
__device__ void load(void* shared, const void* global, unsigned bytes, unsigned long long* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: within_block copy_not_awaited
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        initialize(&full, 1);
        initialize(&empty, 128);
    }
    __syncthreads();
    for (int first = 0; first < n; first += 128) {
        const unsigned parity = first / 128 & 1;
        if (threadIdx.x == 128) {
#ifdef CLEAN
            wait(&empty, parity ^ 1);
#else
            if (first > 0) wait(&full, parity ^ 1);
#endif
            expect(&full, sizeof(data));
            load(data, x + first, sizeof(data), &full);
        } else if (threadIdx.x < 128) {
            wait(&full, parity);
            out[first + threadIdx.x] = data[127 - threadIdx.x];  // expected finding: within_block copy_not_awaited
#ifdef CLEAN
            arrive(&empty);
#endif
        }
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 160, 0, stream>>>(x, out, n); }
