// Only 5 of the box's 8 rows are inside the tensor; the others are filled with zeros. The bytes of all 8 rows arrive at
// the mbarrier, which expects fewer.
// n = 160 elements
#include <cuda_runtime.h>
#include <cudaTypedefs.h>

// clang-format off
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void load(void* tile, const CUtensorMap* map, int row, unsigned long long* full, unsigned bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(full)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(full)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address_of(tile)), "l"(map), "r"(0), "r"(row), "r"(address_of(full)) : "memory");
}
__device__ void wait(unsigned long long* full) {
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra AGAIN; }" ::"r"(address_of(full)) : "memory");  // expected finding: deadlock
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

__global__ void copy(const __grid_constant__ CUtensorMap map, float* out, int n) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long full;
#ifdef CLEAN
    const unsigned bytes = sizeof(tile);
#else
    const unsigned bytes = n * sizeof(float);
#endif
    if (threadIdx.x == 0) load(tile, &map, 0, &full, bytes);
    __syncthreads();
    wait(&full);
    if (threadIdx.x < n) out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { copy<<<1, 256, 0, stream>>>(encode(x, 5), out, n); }
