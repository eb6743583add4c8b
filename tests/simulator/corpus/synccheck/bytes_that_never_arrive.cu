// The mbarrier expects more bytes than the copy transfers, so the phase never completes.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
#else
        ptx::mbarrier_arrive_expect_tx(&full, 2 * sizeof(data));
#endif
        ptx::bulk_load(data, x, sizeof(data), &full);
    }
    ptx::mbarrier_wait_parity(&full, 0);  // expected finding: deadlock
    out[threadIdx.x] = data[threadIdx.x];
}
