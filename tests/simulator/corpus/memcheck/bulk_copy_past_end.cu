// The last tile is loaded and stored completely, although the array ends inside it.
// n = 200, through_shared<<<1, 32>>>(x, out, n)
#include "../ptx.cuh"

__global__ void through_shared(const float* x, float* out, int n) {
    __shared__ __align__(128) float tile[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        for (int first = 0; first < n; first += 128) {
            unsigned bytes = 512;
#ifdef CLEAN
            if (first + 128 > n) bytes = (n - first) * 4;
#endif
            ptx::mbarrier_arrive_expect_tx(&full, bytes);
            ptx::bulk_load(tile, x + first, bytes, &full);  // expected finding: out_of_bounds
            ptx::mbarrier_wait_parity(&full, first / 128 & 1);
            ptx::bulk_store(out + first, tile, bytes);  // expected finding: out_of_bounds
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
    }
}
