// The warpgroup releases a stage before it waits for the wgmma that reads the stage. A copy then overwrites the stage.
// n = 512, product<<<1, 160>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    __shared__ uint64_t full, empty;
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, 128);
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            for (int turn = 0; turn < 3; ++turn) {
                ptx::mbarrier_wait_parity(&empty, turn & 1 ^ 1);
                ptx::mbarrier_arrive_expect_tx(&full, sizeof(a));
                ptx::bulk_load(a, x, sizeof(a), &full);  // expected finding: operands_not_awaited
            }
        }
    } else {
        float d[4] = {};
        for (int turn = 0; turn < 3; ++turn) {
            ptx::mbarrier_wait_parity(&full, turn & 1);
            ptx::wgmma_fence();
            ptx::wgmma(d, a, b);  // expected finding: operands_not_awaited
            ptx::wgmma_commit_group();
#ifdef CLEAN
            ptx::wgmma_wait_group();
            ptx::mbarrier_arrive(&empty);
#else
            ptx::mbarrier_arrive(&empty);
            ptx::wgmma_wait_group();
#endif
        }
        for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
    }
}
