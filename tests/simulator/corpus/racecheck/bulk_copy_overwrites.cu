// The next tile is loaded into a buffer that consumers may still read, because an "empty" mbarrier is missing.
// n = 512, tile<<<1, 160>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, 128);
    }
    __syncthreads();
    for (int first = 0; first < n; first += 128) {
        const unsigned parity = first / 128 & 1;
        if (threadIdx.x == 128) {
#ifdef CLEAN
            ptx::mbarrier_wait_parity(&empty, parity ^ 1);
#else
            if (first > 0) ptx::mbarrier_wait_parity(&full, parity ^ 1);
#endif
            ptx::mbarrier_arrive_expect_tx(&full, sizeof(data));
            ptx::bulk_load(data, x + first, sizeof(data), &full);  // expected finding: within_block copy_not_awaited
        } else if (threadIdx.x < 128) {
            ptx::mbarrier_wait_parity(&full, parity);
            out[first + threadIdx.x] = data[127 - threadIdx.x];  // expected finding: within_block copy_not_awaited
#ifdef CLEAN
            ptx::mbarrier_arrive(&empty);
#endif
        }
    }
}
