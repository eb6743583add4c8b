// The size of a bulk copy is not a multiple of 16 bytes.
// n = 126, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        unsigned bytes = n * 4 / 16 * 16;
#else
        unsigned bytes = n * 4;
#endif
        ptx::mbarrier_arrive_expect_tx(&full, bytes);
        ptx::bulk_load(data, x, bytes, &full);  // expected finding: instruction_misused
    }
    ptx::mbarrier_wait_parity(&full, 0);
    if (threadIdx.x < n) out[threadIdx.x] = threadIdx.x < n / 4 * 4 ? data[threadIdx.x] : x[threadIdx.x];
}
