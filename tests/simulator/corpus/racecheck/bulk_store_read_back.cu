// A thread reads the output of its bulk store, but it has waited only until the store has read its source.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    data[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_store(out, data, sizeof(data));  // expected finding: copy_not_awaited
#ifdef CLEAN
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
        out[0] = out[1] + 1;  // expected finding: copy_not_awaited
    }
}
