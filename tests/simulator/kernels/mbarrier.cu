// Kernels with mbarriers and bulk copies, written in the same ways as in published kernels.
#include <cuda_runtime.h>
#include <cstdint>

__device__ inline uint32_t address_of(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ inline void initialize(uint64_t* barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}
__device__ inline void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ inline void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes)
                 : "memory");
}
__device__ inline void load(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     address_of(shared)),
                 "l"(global), "r"(bytes), "r"(address_of(barrier))
                 : "memory");
}

// Waits in a PTX loop with labels local to the asm block.
__device__ inline void wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred       P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra     LAB_WAIT;\n"
        "DONE:\n"
        "}" ::"r"(address_of(barrier)),
        "r"(parity));
}
// Waits in a C++ loop that tests the flag of try_wait.
__device__ inline void wait_for_flag(uint64_t* barrier, uint32_t parity) {
    uint32_t complete;
    do {
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, %3;\n\t"
            "selp.u32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(complete)
            : "r"(address_of(barrier)), "r"(parity), "r"(0x989680)
            : "memory");
    } while (!complete);
}
// Waits in a PTX loop with labels that %= makes unique.
__device__ inline void wait_with_unique_labels(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred %%p;\n"
        "$WAIT_%=: mbarrier.test_wait.parity.shared.b64 %%p, [%0], %1;\n"
        "@!%%p bra.uni $WAIT_%=;\n"
        "}\n" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

// One warp loads tiles with bulk copies, and four warps use them. Each of two stages has a full and an empty mbarrier.
constexpr int tile = 256;
__global__ void doubled(const float* in, float* out, int tiles) {
    __shared__ __align__(128) float stages[2][tile];
    __shared__ __align__(8) uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; ++stage) {
            initialize(&full[stage], 1);
            initialize(&empty[stage], 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            for (int t = 0; t < tiles; ++t) {
                const int stage = t % 2;
                wait(&empty[stage], (t / 2 & 1) ^ 1);
                mbarrier_arrive_expect_tx(&full[stage], sizeof(stages[0]));
                load(stages[stage], in + t * tile, sizeof(stages[0]), &full[stage]);
            }
        }
    } else {
        for (int t = 0; t < tiles; ++t) {
            const int stage = t % 2;
            if (t % 3 == 0)
                wait(&full[stage], t / 2 & 1);
            else if (t % 3 == 1)
                wait_for_flag(&full[stage], t / 2 & 1);
            else
                wait_with_unique_labels(&full[stage], t / 2 & 1);
            for (int i = threadIdx.x; i < tile; i += 128) out[t * tile + i] = 2 * stages[stage][tile - 1 - i];
            arrive(&empty[stage]);
        }
    }
}

// An arrival returns a state, which other threads pass to a wait. A thread arrives for itself, with a count for several
// threads, or for the last time (arrive_drop).
__global__ void states(int* out) {
    __shared__ __align__(8) uint64_t barrier;
    __shared__ int slots[64];
    uint32_t bar = address_of(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 65;" ::"r"(bar));
    __syncthreads();
    slots[threadIdx.x] = threadIdx.x;
    uint64_t state;
    if (threadIdx.x == 7)
        asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(bar) : "memory");
    else
        asm volatile("mbarrier.arrive.release.cta.shared.b64 %0, [%1], %2;"
                     : "=l"(state)
                     : "r"(bar), "r"(1)
                     : "memory");
    bool complete = false;
    while (!complete) {
        int flag;
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(flag)
                     : "r"(bar), "l"(state)
                     : "memory");
        complete = flag != 0;
    }
    int sum = slots[63 - threadIdx.x];
    uint32_t missing = 0;
    if (threadIdx.x != 7) {
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(missing) : "l"(state));
        wait(&barrier, 1);
    }
    out[threadIdx.x] = sum;
    out[64 + threadIdx.x] = missing;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(bar));
        initialize(&barrier, 1);
        asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(state) : "l"(&barrier) : "memory");
        wait(&barrier, 0);
    }
}

// One warp copies with cp.async, which completes on an mbarrier. The other warp waits for it and reads.
__global__ void copied_by_a_warp(const float4* in, float4* out, int rounds) {
    __shared__ float4 stages[2][32];
    __shared__ uint64_t full[2], empty[2];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        initialize(&full[threadIdx.x], 32);
        initialize(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        const int stage = round % 2, parity = round / 2 & 1;
        if (threadIdx.x < 32) {
            wait(&empty[stage], parity ^ 1);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(&stages[stage][lane])),
                         "l"(in + round * 32 + lane));
            if (round % 3 == 0) {
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address_of(&full[stage])));
            } else {
                asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(address_of(&full[stage])));
                arrive(&full[stage]);
            }
        } else {
            wait(&full[stage], parity);
            out[round * 32 + lane] = stages[stage][31 - lane];
            arrive(&empty[stage]);
        }
    }
}

// Threads write rows to two shared buffers in turn, from which bulk copies store them.
__global__ void stored(const float* in, float* out, int rows) {
    __shared__ __align__(16) float rows_out[2][128];
    for (int row = 0; row < rows; ++row) {
        float* buffer = rows_out[row % 2];
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        buffer[threadIdx.x] = in[row * 128 + threadIdx.x] + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + row * 128),
                         "r"(address_of(buffer)), "r"(512)
                         : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        out[0] += 1;
    }
}

// Two warpgroups change their register counts with setmaxnreg. The second one waits for the first at a named barrier.
__global__ void __launch_bounds__(256, 1) registers(const float* in, float* out) {
    __shared__ float slots[128];
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
        slots[threadIdx.x] = in[threadIdx.x];
        asm volatile("bar.arrive 1, 256;" ::: "memory");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
        asm volatile("barrier.sync 1, 256;" ::: "memory");
        out[threadIdx.x - 128] = slots[255 - threadIdx.x];
    }
}

// Executes elect.sync in two ways, a loop in PTX, and hints that have no effect on results.
__global__ void elected(const float* in, int* out) {
    uint32_t is_elected = 0, lane = 0, again;
    asm volatile(
        "{\n"
        ".reg .b32 %%rx;\n"
        ".reg .pred %%px;\n"
        "     elect.sync %%rx|%%px, %2;\n"
        "@%%px mov.s32 %1, 1;\n"
        "     mov.s32 %0, %%rx;\n"
        "}\n"
        : "+r"(lane), "+r"(is_elected)
        : "r"(0xffffffff));
    asm volatile("{ .reg .pred P; elect.sync _|P, 0xffffffff; selp.b32 %0, 1, 0, P; }" : "=r"(again));
    int sum;
    asm volatile(
        "{ .reg .pred p; .reg .s32 i; mov.s32 i, 0;"
        " LOOP: add.s32 i, i, 3; setp.lt.s32 p, i, 20; @p bra LOOP; mov.s32 %0, i; }"
        : "=r"(sum));
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(in), "r"(64), "l"(policy));
    asm volatile("prefetch.global.L2::evict_last [%0]; prefetchu.L1 [%0];" ::"l"(in));
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = is_elected + 10 * again + 100 * lane + 1000 * sum;
}

extern "C" void run_doubled(const float* in, float* out, int tiles, cudaStream_t s) {
    doubled<<<1, 160, 0, s>>>(in, out, tiles);
}
extern "C" void run_states(int* out, cudaStream_t s) { states<<<1, 64, 0, s>>>(out); }
extern "C" void run_copied(const float* in, float* out, int rounds, cudaStream_t s) {
    copied_by_a_warp<<<1, 64, 0, s>>>((const float4*)in, (float4*)out, rounds);
}
extern "C" void run_stored(const float* in, float* out, int rows, cudaStream_t s) {
    stored<<<1, 128, 0, s>>>(in, out, rows);
}
extern "C" void run_elected(const float* in, int* out, cudaStream_t s) { elected<<<1, 32, 0, s>>>(in, out); }
extern "C" void run_registers(const float* in, float* out, cudaStream_t s) { registers<<<1, 256, 0, s>>>(in, out); }
