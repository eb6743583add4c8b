// Copies one TMA box of a tensor from global to shared memory or back. The test passes an array of numbers, which
// describes the tensor map and the coordinates.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstdint>

struct Box {
    int type, rank, swizzle, fill_nan, reduction;
    int size[5], stride[5], box[5], step[5], at[5];  // stride[d]: bytes between neighbors along dimension d + 1
};

constexpr int kTile = 1024;  // offset of the tile in shared memory: a multiple of every swizzle's period

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

// clang-format off
__device__ void tma_load(int rank, uint32_t to, const CUtensorMap* map, const int* at, uint32_t barrier) {
    if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]) : "memory");
    if (rank == 2) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]) : "memory");
    if (rank == 3) asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "l"(0x1000000000000000ull) : "memory");
    if (rank == 4) asm volatile("cp.async.bulk.tensor.4d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
    if (rank == 5) asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");
}

__device__ void tma_store(int rank, const CUtensorMap* map, const int* at, uint32_t from) {
    if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];" ::"l"(map), "r"(from), "r"(at[0]) : "memory");
    if (rank == 2) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (rank == 3) asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]) : "memory");
    if (rank == 4) asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2, %3, %4, %5}], [%1], %6;" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "l"(0x1000000000000000ull) : "memory");
    if (rank == 5) asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");
}

__device__ void reduce_box(int reduction, const CUtensorMap* map, const int* at, uint32_t from) {
    if (reduction == 1) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 2) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 3) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 4) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 5) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.dec.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 6) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 7) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.or.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
    if (reduction == 8) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]) : "memory");
}

__device__ void prefetch_box(int rank, const CUtensorMap* map, const int* at) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
    if (rank == 1) asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global [%0, {%1}];" ::"l"(map), "r"(at[0]) : "memory");
    if (rank == 2) asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(at[0]), "r"(at[1]) : "memory");
    if (rank == 3) asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]) : "memory");
    if (rank == 4) asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
    if (rank == 5) asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global [%0, {%1, %2, %3, %4, %5}];" ::"l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");
}

// Reduces contiguous bytes of shared memory into global memory (cp.reduce.async.bulk).
__device__ void reduce_run(int which, void* to, uint32_t from, uint32_t bytes) {
    if (which == 0) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 1) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 2) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 3) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 4) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 5) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 6) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 7) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 8) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u64 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 9) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 10) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.bf16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 11) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 12) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 13) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.dec.u32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 14) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 15) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b64 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    if (which == 16) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
// clang-format on

__device__ void wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@!complete bra again;\n"
        "}" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

// Loads with a tensor map in a kernel parameter, in constant memory or in global memory.
__constant__ CUtensorMap constant_map;

__device__ void load(const CUtensorMap* map, const Box& b, int offset, int bytes, int* out) {
    extern __shared__ __align__(1024) char memory[];
    auto* full = reinterpret_cast<uint64_t*>(memory);
    char* tile = memory + kTile + offset;
    if (threadIdx.x == 0) {
        prefetch_box(b.rank, map, b.at);
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(full)), "r"(1) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(full)), "r"(bytes)
                     : "memory");
        tma_load(b.rank, address_of(tile), map, b.at, address_of(full));
    }
    __syncthreads();
    wait(full, 0);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = reinterpret_cast<int*>(tile)[i];
}

__global__ void load_by_parameter(const __grid_constant__ CUtensorMap map, const __grid_constant__ Box b, int offset,
                                  int bytes, int* out) {
    load(&map, b, offset, bytes, out);
}

__global__ void load_by_constant(const __grid_constant__ Box b, int offset, int bytes, int* out) {
    load(&constant_map, b, offset, bytes, out);
}

__global__ void load_by_pointer(const CUtensorMap* map, const __grid_constant__ Box b, int offset, int bytes,
                                int* out) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    load(map, b, offset, bytes, out);
}

__global__ void store(const __grid_constant__ CUtensorMap map, const __grid_constant__ Box b, int offset, int bytes,
                      const int* tile_in) {
    extern __shared__ __align__(1024) char memory[];
    char* tile = memory + kTile + offset;
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) reinterpret_cast<int*>(tile)[i] = tile_in[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        if (b.reduction)
            reduce_box(b.reduction, &map, b.at, address_of(tile));
        else
            tma_store(b.rank, &map, b.at, address_of(tile));
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void reduce_runs(int which, const int* operand, int* out, int bytes) {
    extern __shared__ __align__(1024) char memory[];
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) reinterpret_cast<int*>(memory)[i] = operand[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        reduce_run(which, out, address_of(memory), bytes);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

// Encodes a tensor map. Returns the driver's error, or 0.
static int encode(CUtensorMap* map, const void* address, const Box& b) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found)) return -1;
    if (found != cudaDriverEntryPointSuccess) return -2;
    auto encode_tiled = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
    cuuint64_t size[5], stride[5];
    cuuint32_t box[5], step[5];
    for (int d = 0; d < 5; ++d) {
        size[d] = b.size[d];
        stride[d] = b.stride[d];
        box[d] = b.box[d];
        step[d] = b.step[d];
    }
    return encode_tiled(map, static_cast<CUtensorMapDataType>(b.type), b.rank, const_cast<void*>(address), size, stride,
                        box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(b.swizzle),
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, static_cast<CUtensorMapFloatOOBfill>(b.fill_nan));
}

static int shared_bytes(const void* kernel, int offset, int bytes) {
    int needed = kTile + offset + bytes;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, needed);
    return needed;
}

// x: the tensor's memory (bytes). out: the tile as it lies in shared memory, `bytes` bytes. error: one number.
extern "C" void run_load(const int* x, const int* box, int* out, int* error, int offset, int bytes, int by,
                         cudaStream_t stream) {
    Box b;
    CUtensorMap map;
    cudaMemcpy(&b, box, sizeof b, cudaMemcpyDeviceToHost);
    int failed = encode(&map, x, b);
    cudaMemcpy(error, &failed, sizeof failed, cudaMemcpyHostToDevice);
    if (failed) return;
    if (by == 0) {
        int shared = shared_bytes((const void*)load_by_parameter, offset, bytes);
        load_by_parameter<<<1, 64, shared, stream>>>(map, b, offset, bytes, out);
    } else if (by == 1) {
        cudaMemcpyToSymbol(constant_map, &map, sizeof map);
        int shared = shared_bytes((const void*)load_by_constant, offset, bytes);
        load_by_constant<<<1, 64, shared, stream>>>(b, offset, bytes, out);
    } else {
        CUtensorMap* global = nullptr;
        cudaMalloc(&global, sizeof map);
        cudaMemcpy(global, &map, sizeof map, cudaMemcpyHostToDevice);
        int shared = shared_bytes((const void*)load_by_pointer, offset, bytes);
        load_by_pointer<<<1, 64, shared, stream>>>(global, b, offset, bytes, out);
        cudaStreamSynchronize(stream);
        cudaFree(global);
    }
}

// tile: as it lies in shared memory, `bytes` bytes; out: the tensor's memory.
extern "C" void run_store(const int* tile, const int* box, int* out, int* error, int offset, int bytes,
                          cudaStream_t stream) {
    Box b;
    CUtensorMap map;
    cudaMemcpy(&b, box, sizeof b, cudaMemcpyDeviceToHost);
    int failed = encode(&map, out, b);
    cudaMemcpy(error, &failed, sizeof failed, cudaMemcpyHostToDevice);
    if (failed) return;
    int shared = shared_bytes((const void*)store, offset, bytes);
    store<<<1, 64, shared, stream>>>(map, b, offset, bytes, tile);
}

// `blocks` blocks reduce the same operand into out.
extern "C" void run_reduce(int which, const int* operand, int* out, int bytes, int blocks, cudaStream_t stream) {
    reduce_runs<<<blocks, 64, bytes, stream>>>(which, operand, out, bytes);
}
