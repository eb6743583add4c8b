// A product of matrices through a ring of four stages: one thread asks the copy engine for tiles of A and B, four warps
// multiply them, and the copy engine stores the result. Each stage has a full mbarrier (the tiles have arrived) and an
// empty one (all have read them). c = a b^T; a [m, k], b [n, k], c [m, n], float32.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kStages = 4, kRows = 32, kColumns = 16, kDepth = 32, kConsumerWarpgroups = 128;

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals) : "memory");
}

__device__ void expect(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes)
                 : "memory");
}

__device__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}

__device__ void wait(uint64_t* barrier, int parity) {
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

__device__ void load(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            address_of(tile)),
        "l"(map), "r"(column), "r"(row), "r"(address_of(barrier))
        : "memory");
}

// Returns the index of an element in a tile with rows of 32 floats and the 128-byte swizzle.
__device__ int swizzled(int row, int column) { return row * kDepth + (column ^ (row % 8 * 4)); }

struct Stage {
    float a[kRows * kDepth];
    float b[kColumns * kDepth];
};

__global__ void __launch_bounds__(kConsumerWarpgroups + 32)
    product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
            const __grid_constant__ CUtensorMap c, int k) {
    extern __shared__ __align__(1024) char memory[];
    Stage* ring = reinterpret_cast<Stage*>(memory);
    __shared__ alignas(128) float result[kRows * kColumns];
    __shared__ uint64_t full[kStages], empty[kStages];
    const int row = blockIdx.y * kRows, column = blockIdx.x * kColumns, tiles = (k + kDepth - 1) / kDepth;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            init(&full[stage], 1);
            init(&empty[stage], kConsumerWarpgroups / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= kConsumerWarpgroups) {
        if (threadIdx.x == kConsumerWarpgroups) {
            for (int tile = 0; tile < tiles; ++tile) {
                const int stage = tile % kStages;
                wait(&empty[stage], (tile / kStages & 1) ^ 1);
                expect(&full[stage], sizeof(Stage));
                load(ring[stage].a, &a, tile * kDepth, row, &full[stage]);
                load(ring[stage].b, &b, tile * kDepth, column, &full[stage]);
            }
        }
        return;
    }
    float sum[kRows * kColumns / kConsumerWarpgroups] = {};
    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile % kStages;
        wait(&full[stage], tile / kStages & 1);
        for (int i = 0; i < kRows * kColumns / kConsumerWarpgroups; ++i) {
            const int element = i * kConsumerWarpgroups + threadIdx.x, r = element / kColumns, n = element % kColumns;
            for (int d = 0; d < kDepth; ++d) sum[i] += ring[stage].a[swizzled(r, d)] * ring[stage].b[swizzled(n, d)];
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(&empty[stage]);
    }
    for (int i = 0; i < kRows * kColumns / kConsumerWarpgroups; ++i)
        result[i * kConsumerWarpgroups + threadIdx.x] = sum[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&c),
                     "r"(column), "r"(row), "r"(address_of(result))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

// Encodes a tensor map of a matrix [rows, columns]. Returns whether this succeeded.
static bool encode(CUtensorMap* map, const float* matrix, int rows, int columns, int box_rows, int box_columns,
                   CUtensorMapSwizzle swizzle) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess) return false;
    cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
    cuuint64_t stride[] = {columns * sizeof(float)};
    cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
    auto encode_tiled = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
    return encode_tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), size, stride, box, step,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

extern "C" void run_product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    CUtensorMap map_a, map_b, map_c;
    if (!encode(&map_a, a, m, k, kRows, kDepth, CU_TENSOR_MAP_SWIZZLE_128B) ||
        !encode(&map_b, b, n, k, kColumns, kDepth, CU_TENSOR_MAP_SWIZZLE_128B) ||
        !encode(&map_c, c, m, n, kRows, kColumns, CU_TENSOR_MAP_SWIZZLE_NONE)) {
        return;
    }
    dim3 grid((n + kColumns - 1) / kColumns, (m + kRows - 1) / kRows);
    product<<<grid, kConsumerWarpgroups + 32, kStages * sizeof(Stage), stream>>>(map_a, map_b, map_c, k);
}

// Queries driver functions in several ways, and sets a bit of `out` for each correct answer: some queries must return
// the function, others must return nothing.
extern "C" void run_entry_points(int* out, cudaStream_t stream) {
    void *entry = nullptr, *other = nullptr, *none = nullptr;
    cudaDriverEntryPointQueryResult found;
    int ways = 0;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) ==
            cudaSuccess &&
        found == cudaDriverEntryPointSuccess && entry) {
        ways |= 1;
    }
    if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &other, cudaEnableDefault, nullptr) == cudaSuccess && other)
        ways |= 2;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &none, 11000, cudaEnableDefault, &found) ==
            cudaSuccess &&
        found == cudaDriverEntryPointVersionNotSufficent && !none) {
        ways |= 4;
    }
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeOnToast", &none, 12000, cudaEnableDefault, &found);
    if (found == cudaDriverEntryPointSymbolNotFound && !none) ways |= 8;
    cudaMemcpyAsync(out, &ways, sizeof ways, cudaMemcpyHostToDevice, stream);
}
