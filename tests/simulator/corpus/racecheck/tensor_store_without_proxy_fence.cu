// Threads write the source of a tensor store. Without a proxy fence the tensor store may not see the writes.
// n = 256 elements
#include <cuda_runtime.h>
#include <cudaTypedefs.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void store(const CUtensorMap* map, int row, const void* tile) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(0), "r"(row), "r"(address_of(tile)) : "memory");  // expected finding: missing_proxy_fence
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// clang-format on

// Returns a tensor map of a matrix with rows of 32 floats, in boxes of 8 rows.
static CUtensorMap encode(const float* matrix, int rows) {
    CUtensorMap map = {};
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    cuuint64_t size[] = {32, (cuuint64_t)rows}, stride[] = {128};
    cuuint32_t box[] = {32, 8}, step[] = {1, 1};
    ((PFN_cuTensorMapEncodeTiled_v12000)entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void*)matrix, size, stride, box, step,
                                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}

__global__ void doubled(const float* x, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float tile[256];
    tile[threadIdx.x] = 2 * x[threadIdx.x];  // expected finding: missing_proxy_fence
#ifdef CLEAN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        store(&map, 0, tile);
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { doubled<<<1, 256, 0, stream>>>(x, encode(out, 8)); }
