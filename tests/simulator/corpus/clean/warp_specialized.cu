// One warp loads tiles with bulk copies. A warpgroup processes them and stores its results with bulk copies. Each of
// two stages has a full and an empty mbarrier.
// n = 1024, scale<<<1, 256>>>(x, out, n); add_one<<<1, 128>>>(out, n)
#include "../ptx.cuh"

__global__ void __launch_bounds__(256, 1) scale(const float* x, float* out, int n) {
    __shared__ __align__(128) float in[2][128];
    __shared__ __align__(128) float results[2][128];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            for (int first = 0, turn = 0; first < n; first += 128, ++turn) {
                const int stage = turn % 2;
                ptx::mbarrier_wait_parity(&empty[stage], (turn / 2 & 1) ^ 1);
                ptx::mbarrier_arrive_expect_tx(&full[stage], 512);
                ptx::bulk_load(in[stage], x + first, 512, &full[stage]);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        const int lane = threadIdx.x % 32, i = threadIdx.x - 128;
        for (int first = 0, turn = 0; first < n; first += 128, ++turn) {
            const int stage = turn % 2;
            // Wait until the store of two iterations ago has read this buffer.
            if (i == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            asm volatile("bar.sync 1, 128;" ::: "memory");
            ptx::mbarrier_wait_parity(&full[stage], turn / 2 & 1);
            results[stage][i] = 2 * in[stage][127 - i];
            __syncwarp();
            if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (i == 0) ptx::bulk_store(out + first, results[stage], 512);
        }
        if (i == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;
}
