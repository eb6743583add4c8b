// The block exits before its bulk store has read the shared memory.
// n = 128 elements
#include "../ptx.cuh"

__global__ void twice(const float* x, float* out, int n) {
    __shared__ __align__(16) float tile[128];
    tile[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_store(out, tile, sizeof(tile));  // expected finding: copy_at_exit
#ifdef CLEAN
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { twice<<<1, 128, 0, stream>>>(x, out, n); }
