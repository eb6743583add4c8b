// The parity does not alternate: the second wait returns at once, and the third phase is awaited forever.
// n = 256, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    for (int first = 0; first < n; first += 128) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
            ptx::bulk_load(data, x + first, sizeof(data), &full);
        }
#ifdef CLEAN
        ptx::mbarrier_wait_parity(&full, first / 128 & 1);
#else
        ptx::mbarrier_wait_parity(&full, first / 64 & 1);
        ptx::mbarrier_wait_parity(&full, 1);  // expected finding: deadlock
#endif
        out[first + threadIdx.x] = data[threadIdx.x];
        __syncthreads();
    }
}
