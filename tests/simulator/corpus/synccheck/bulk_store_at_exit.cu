// The block exits before its bulk store has read the shared memory.
// n = 128, twice<<<1, 128>>>(x, out, n)
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
