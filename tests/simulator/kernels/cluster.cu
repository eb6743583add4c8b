// Thread block clusters: ranks of blocks, distributed shared memory, and synchronization of accesses to it.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <cstdint>

namespace cg = cooperative_groups;

__device__ inline uint32_t address_of(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
// Returns the address of the same variable in the block with this rank.
__device__ inline uint32_t mapped(uint32_t address, uint32_t rank) {
    uint32_t result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
    return result;
}
__device__ inline void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline void wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @p bra DONE; "
        "bra WAIT; DONE: }" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

// Gets a block's indices from cooperative groups, intrinsics and PTX, and compares them. out: [block][21].
__device__ void identify(int* out) {
    uint3 block = blockIdx;
    int* mine = out + 21 * (block.x + gridDim.x * (block.y + gridDim.y * block.z));
    auto cluster = cg::this_cluster();
    dim3 index = cluster.block_index(), dimensions = cluster.dim_blocks();
    dim3 number = __clusterIdx(), count = __clusterGridDimInClusters();
    int values[9] = {(int)index.x,      (int)index.y,  (int)index.z,  (int)dimensions.x, (int)dimensions.y,
                     (int)dimensions.z, (int)number.x, (int)number.y, (int)number.z};
    for (int i = 0; i < 9; ++i) mine[i] = values[i];
    mine[9] = count.x;
    mine[10] = count.y;
    mine[11] = count.z;
    mine[12] = cluster.block_rank();
    mine[13] = cluster.num_blocks();
    uint32_t rank, ranks, x, y, z;
    asm("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(ranks));
    mine[14] = rank == __clusterRelativeBlockRank() && ranks == __clusterSizeInBlocks();
    asm("mov.u32 %0, %%cluster_ctaid.x; mov.u32 %1, %%cluster_ctaid.y; mov.u32 %2, %%cluster_ctaid.z;"
        : "=r"(x), "=r"(y), "=r"(z));
    dim3 relative = __clusterRelativeBlockIdx();
    mine[15] = x == relative.x && y == relative.y && z == relative.z;
    asm("mov.u32 %0, %%cluster_nctaid.x; mov.u32 %1, %%clusterid.y; mov.u32 %2, %%nclusterid.z;"
        : "=r"(x), "=r"(y), "=r"(z));
    mine[16] = x == __clusterDim().x && y == number.y && z == count.z;
    mine[17] = __clusterDimIsSpecified();
    mine[18] = cluster.num_threads();
    mine[19] = cluster.thread_rank();
    mine[20] = cluster.thread_index().y;
}
__global__ void __cluster_dims__(2, 3, 1) who(int* out) { identify(out); }
__global__ void who_at_launch(int* out) { identify(out); }
template <int N>
__global__ void __cluster_dims__(1, 1, 2) who_template(int* out) {
    identify(out);
}

// Each block reads, writes and adds to the shared memory of its neighbors, through pointers and in PTX.
constexpr int blocks = 4;
__global__ void __cluster_dims__(blocks) __launch_bounds__(64) neighbors(const float* x, float* out, int* sums) {
    __shared__ float mine[64], given[64];
    __shared__ int sum[2];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), next = (rank + 1) % blocks;
    const int i = threadIdx.x;
    mine[i] = x[blockIdx.x * 64 + i];
    if (i < 2) sum[i] = 0;
    cluster.sync();
    float* theirs = cluster.map_shared_rank(mine, next);
    float ahead = theirs[63 - i];
    float behind;
    asm volatile("ld.shared::cluster.f32 %0, [%1+4];"
                 : "=f"(behind)
                 : "r"(mapped(address_of(mine), (rank + blocks - 1) % blocks) + 4 * (i & 31)));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapped(address_of(&given[i]), next)), "f"(ahead - behind)
                 : "memory");
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(mapped(address_of(&sum[0]), 0)), "r"(i)
                 : "memory");
    int before;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(mapped(address_of(&sum[1]), blocks - 1)), "r"(1)
                 : "memory");
    meet();
    out[blockIdx.x * 64 + i] = given[i];
    if (i < 2) sums[blockIdx.x * 2 + i] = sum[i];
    unsigned of_theirs;
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(of_theirs) : "r"(mapped(address_of(mine), next)));
    if (of_theirs != next || cluster.query_shared_rank(theirs) != next || __isShared(theirs)) __trap();
    if (before < 0 || before >= 64 * blocks) __trap();
}

// Arrives at the cluster barrier and waits in separate steps, with other work in between.
__global__ void __cluster_dims__(2, 1, 1) two_steps(const float* x, float* out, int rounds) {
    __shared__ float mine[32];
    float other = x[blockIdx.x * 32 + threadIdx.x];
    const float* theirs = static_cast<const float*>(__cluster_map_shared_rank(mine, __clusterRelativeBlockRank() ^ 1));
    for (int round = 0; round < rounds; ++round) {
        mine[threadIdx.x] = other + 1;
        __cluster_barrier_arrive();
        float own = 2 * other;
        __cluster_barrier_wait();
        other = theirs[31 - threadIdx.x] - own;
        cg::this_cluster().barrier_wait(cg::this_cluster().barrier_arrive());
    }
    out[blockIdx.x * 32 + threadIdx.x] = other;
}

// Block 1 sends a tile to block 0: by asynchronous stores, which complete on block 0's mbarrier, and by a bulk copy.
// When block 0 has read both, it arrives at an mbarrier of block 1.
__global__ void __cluster_dims__(2, 1, 1) handed_over(const float* x, float* out, int rounds) {
    __shared__ __align__(128) float stored[64], copied[64], tile[64];
    __shared__ __align__(8) uint64_t full, empty;
    const uint32_t rank = cg::this_cluster().block_rank();
    const int i = threadIdx.x;
    if (i == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address_of(&empty)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    for (int round = 0; round < rounds; ++round) {
        if (rank == 1) {
            if (round > 0) wait(&empty, (round - 1) & 1);
            float value = x[64 * round + i];
            tile[i] = value;
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            const uint32_t barrier = mapped(address_of(&full), 0);
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                             mapped(address_of(&stored[63 - i]), 0)),
                         "f"(value), "r"(barrier)
                         : "memory");
            if (i == 0) {
                asm volatile(
                    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                        "r"(mapped(address_of(copied), 0)),
                    "r"(address_of(tile)), "r"(256), "r"(barrier)
                    : "memory");
            }
        } else {
            if (i == 0) {
                asm volatile(
                    "mbarrier.arrive.expect_tx.release.cluster.shared::cta.b64 _, [%0], 512;" ::"r"(address_of(&full))
                    : "memory");
            }
            wait(&full, round & 1);
            out[64 * round + i] = stored[i] + 100 * copied[i];
            asm volatile(
                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapped(address_of(&empty), 1))
                : "memory");
        }
    }
    if (rank == 1 && rounds > 0) wait(&empty, (rounds - 1) & 1);
    meet();
}

// Each block loads a quarter of a tile into all blocks of its cluster (multicast): contiguous bytes, or a box of a
// tensor.
template <bool TENSOR>
__global__ void __cluster_dims__(blocks)
    shared_tile(const __grid_constant__ CUtensorMap map, const float* x, float* out) {
    __shared__ __align__(128) float tile[blocks][64];
    __shared__ __align__(8) uint64_t full;
    const uint32_t rank = cg::this_cluster().block_rank();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&full)), "r"(1024)
                     : "memory");
    }
    meet();
    if (threadIdx.x == 0) {
        const uint16_t all = (1 << blocks) - 1;
        const int row = blockIdx.x / blocks * blocks + rank;
        if (TENSOR) {
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(address_of(tile[rank])),
                "l"(&map), "r"(0), "r"(row), "r"(address_of(&full)), "h"(all)
                : "memory");
        } else {
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%0], [%1], %2, [%3], %4;" ::"r"(address_of(tile[rank])),
                "l"(x + 64 * row), "r"(256), "r"(address_of(&full)), "h"(all)
                : "memory");
        }
    }
    wait(&full, 0);
    float sum = 0;
    for (int r = 0; r < blocks; ++r) sum += (r + 1) * tile[r][(threadIdx.x + rank) % 64];
    out[64 * blockIdx.x + threadIdx.x] = sum;
    meet();
}

// The barrier waits only for threads that have not exited, so a block may exit early.
__global__ void __cluster_dims__(4, 1, 1) early(int* out) {
    if (blockIdx.x % 4 == 3) return;
    if (threadIdx.x >= 32) return;
    cg::this_cluster().sync();
    out[blockIdx.x * 32 + threadIdx.x] = 1;
}

extern "C" void run_who(int* out, cudaStream_t s) { who<<<dim3(4, 3, 2), dim3(2, 2), 0, s>>>(out); }
extern "C" void run_who_alone(int* out, cudaStream_t s) { who_at_launch<<<dim3(4, 3, 2), dim3(2, 2), 0, s>>>(out); }
extern "C" void run_who_template(int* out, cudaStream_t s) {
    who_template<7><<<dim3(4, 3, 2), dim3(2, 2), 0, s>>>(out);
}
// clang-format off
extern "C" void run_who_at_launch(int* out, int gx, int gy, int gz, int cx, int cy, int cz, bool large, int how, cudaStream_t s) {
    // clang-format on
    cudaFuncSetAttribute(who_at_launch, cudaFuncAttributeNonPortableClusterSizeAllowed, large);
    cudaLaunchAttribute attributes[1];
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = cx;
    attributes[0].val.clusterDim.y = cy;
    attributes[0].val.clusterDim.z = cz;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(gx, gy, gz);
    config.blockDim = dim3(2, 2);
    config.stream = s;
    config.attrs = attributes;
    config.numAttrs = 1;
    void* arguments[] = {&out};
    if (how == 0) cudaLaunchKernelEx(&config, who_at_launch, out);
    if (how == 1) cudaLaunchKernelExC(&config, (const void*)who_at_launch, arguments);
    int found[2] = {-1, -1};
    if (how == 2 && cudaOccupancyMaxActiveClusters(&found[0], who_at_launch, &config) == cudaSuccess &&
        cudaOccupancyMaxPotentialClusterSize(&found[1], who_at_launch, &config) == cudaSuccess)
        cudaMemcpy(out, found, sizeof(found), cudaMemcpyHostToDevice);
}
extern "C" void run_neighbors(const float* x, float* out, int* sums, int clusters, cudaStream_t s) {
    neighbors<<<blocks * clusters, 64, 0, s>>>(x, out, sums);
}
extern "C" void run_two_steps(const float* x, float* out, int rounds, cudaStream_t s) {
    two_steps<<<4, 32, 0, s>>>(x, out, rounds);
}
extern "C" void run_handed_over(const float* x, float* out, int rounds, cudaStream_t s) {
    handed_over<<<2, 64, 0, s>>>(x, out, rounds);
}
extern "C" void run_shared_tile(const float* x, float* out, int clusters, bool tensor, cudaStream_t s) {
    CUtensorMap map = {};
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    if (!entry) return;
    cuuint64_t size[] = {64, static_cast<cuuint64_t>(blocks * clusters)}, stride[] = {256};
    cuuint32_t box[] = {64, 1}, step[] = {1, 1};
    reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry)(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), size, stride, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (tensor)
        shared_tile<true><<<blocks * clusters, 64, 0, s>>>(map, x, out);
    else
        shared_tile<false><<<blocks * clusters, 64, 0, s>>>(map, x, out);
}
extern "C" void run_early(int* out, cudaStream_t s) { early<<<8, 64, 0, s>>>(out); }
