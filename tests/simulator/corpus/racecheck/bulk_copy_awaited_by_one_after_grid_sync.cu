// A bulk copy is in flight at a grid barrier. Afterwards one thread waits for the copy, and sets a flag by a relaxed
// store, which orders nothing. The other threads read the data.
// n = 128 elements
#include <cooperative_groups.h>
#include <cuda/atomic>
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
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)) : "memory");  // expected finding: copy_not_awaited
}
__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// clang-format on

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    __shared__ unsigned complete;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> flag(complete);
    if (threadIdx.x == 0) {
        initialize(&full, 1);
        flag.store(0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&full, sizeof(data));
        load(data, x, sizeof(data), &full);
    }
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) {
        wait(&full, 0);
#ifdef CLEAN
        __threadfence_block();
#endif
        flag.store(1, cuda::std::memory_order_relaxed);
    }
    while (flag.load(cuda::std::memory_order_relaxed) == 0) {
    }
#ifdef CLEAN
    __threadfence_block();
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: copy_not_awaited
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {&x, &out, &n};
    cudaLaunchCooperativeKernel(tile, dim3(1), dim3(128), arguments, 0, stream);
}
