// The size of a bulk copy is not a multiple of 16 bytes.
// n = 126 elements
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
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: instruction_misused
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
#ifdef CLEAN
        unsigned bytes = n * 4 / 16 * 16;
#else
        unsigned bytes = n * 4;
#endif
        expect(&full, bytes);
        load(data, x, bytes, &full);
    }
    wait(&full, 0);
    if (threadIdx.x < n) out[threadIdx.x] = threadIdx.x < n / 4 * 4 ? data[threadIdx.x] : x[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { tile<<<1, 128, 0, stream>>>(x, out, n); }
