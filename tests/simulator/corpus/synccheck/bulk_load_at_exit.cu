// One more tile is loaded than used, and the block exits while the load is in flight.
// n = 512, pass_on<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void pass_on(const float* x, float* out, int n) {
    __shared__ __align__(128) float tiles[2][128];
    __shared__ unsigned long long full[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) ptx::mbarrier_init(&full[i], 1);
        ptx::mbarrier_arrive_expect_tx(&full[0], 512);
        ptx::bulk_load(tiles[0], x, 512, &full[0]);
    }
    __syncthreads();
    for (int tile = 0; tile < n / 128; ++tile) {
#ifdef CLEAN
        const bool more = tile + 1 < n / 128;
#else
        const bool more = true;
#endif
        const int next = (tile + 1) % (n / 128);
        if (threadIdx.x == 0 && more) {
            ptx::mbarrier_arrive_expect_tx(&full[(tile + 1) % 2], 512);
            ptx::bulk_load(tiles[(tile + 1) % 2], x + next * 128, 512, &full[(tile + 1) % 2]);  // expected finding: copy_at_exit
        }
        ptx::mbarrier_wait_parity(&full[tile % 2], tile / 2 & 1);
        out[tile * 128 + threadIdx.x] = tiles[tile % 2][threadIdx.x];
        __syncthreads();
    }
}
