// One warp loads tiles with bulk copies. A warpgroup processes them and stores its results with bulk copies. Each of
// two stages has a full and an empty mbarrier.
// n = 1024 elements
#include <cuda_runtime.h>
#include <cstdint>

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

__global__ void __launch_bounds__(256, 1) scale(const float* x, float* out, int n) {
    __shared__ __align__(128) float in[2][128];
    __shared__ __align__(128) float results[2][128];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; ++stage) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address_of(&full[stage])));
            asm volatile("mbarrier.init.shared.b64 [%0], 4;" ::"r"(address_of(&empty[stage])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            for (int first = 0, turn = 0; first < n; first += 128, ++turn) {
                const int stage = turn % 2;
                wait(&empty[stage], (turn / 2 & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" ::"r"(address_of(&full[stage])) : "memory");
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(address_of(in[stage])),
                             "l"(x + first), "r"(address_of(&full[stage]))
                             : "memory");
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
            wait(&full[stage], turn / 2 & 1);
            results[stage][i] = 2 * in[stage][127 - i];
            __syncwarp();
            if (lane == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address_of(&empty[stage])) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (i == 0) {
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out + first), "r"(address_of(results[stage]))
                             : "memory");
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
        }
        if (i == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    scale<<<1, 256, 0, stream>>>(x, out, n);
    add_one<<<1, 128, 0, stream>>>(out, n);
}
