// A Hopper pipeline. A producer warp copies tiles into shared memory. Two consumer warpgroups multiply their own rows
// of A by the same B with wgmma. They alternate at named barriers, and keep one wgmma in flight. In a second loop, A
// comes from registers.
// n = 4096, pipeline<<<1, 384>>>(x, out, n)
#include "../ptx.cuh"

__device__ __forceinline__ void multiply(float (&d)[8], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "l"(a), "l"(b), "r"(add));
}
__device__ __forceinline__ void multiply(float (&d)[8], const unsigned (&a)[4], uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, "
        "%12, 1, 1, 1, 1;\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

constexpr int a_bytes = 2 * 64 * 32, b_bytes = 16 * 32, stages = 2;

__global__ void __launch_bounds__(384, 1) pipeline(const float* x, float* out, int n) {
    __shared__ __align__(128) char a[stages][a_bytes], b[stages][b_bytes];
    __shared__ uint64_t full[stages], empty[stages];
    const int turns = n / 1024, group = threadIdx.x / 128 - 1;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], 8);
        }
    }
    __syncthreads();
    if (group < 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            for (int turn = 0; turn < turns; ++turn) {
                const int stage = turn % stages;
                ptx::mbarrier_wait_parity(&empty[stage], (turn / stages & 1) ^ 1);
                ptx::mbarrier_arrive_expect_tx(&full[stage], a_bytes + b_bytes);
                ptx::bulk_load(a[stage], x + 1024 * turn, a_bytes, &full[stage]);
                ptx::bulk_load(b[stage], x, b_bytes, &full[stage]);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    float d[8], e[8] = {};
    for (int turn = 0; turn < turns; ++turn) {
        const int stage = turn % stages;
        ptx::mbarrier_wait_parity(&full[stage], turn / stages & 1);
        // The warpgroups take turns.
        if (group == 1 || turn > 0) asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
        ptx::wgmma_fence();
        multiply(d, ptx::make_smem_desc(a[stage] + group * a_bytes / 2), ptx::make_smem_desc(b[stage]), turn > 0);
        ptx::wgmma_commit_group();
        if (group == 0 || turn < turns - 1) asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory");
        ptx::wgmma_wait_group();
        // d may be read: only the wgmma that writes e is in flight.
        const unsigned words[4] = {turn * 0x3f803f80u, 0u, 0x3f803f80u, 0x40004000u};
        ptx::wgmma_fence();
        multiply(e, words, ptx::make_smem_desc(b[stage]));
        ptx::wgmma_commit_group();
        for (int i = 0; i < 8; ++i) out[(turn * 256 + threadIdx.x - 128) * 4 % n + i % 4] = d[i];
        ptx::wgmma_wait_group();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&empty[stage]);
        for (int i = 0; i < 8; ++i) e[i] *= 0.5f;
    }
    if (e[0] > 0) out[(threadIdx.x - 128) * 4] = e[1];
}
