// Bulk copies that complete on a cuda::barrier, with functions of cuda::device::experimental as in the CUDA programming
// guide.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cuda/barrier>
#include <utility>

using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

constexpr int kWidth = 32, kHeight = 8;

// Adds one to every element of a matrix, tile by tile.
__global__ void plus_one(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap to) {
    __shared__ alignas(128) int tile[kHeight][kWidth];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    const int x = blockIdx.x * kWidth, y = blockIdx.y * kHeight;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < kHeight * kWidth; i += blockDim.x) tile[i / kWidth][i % kWidth] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_shared_to_global(&to, x, y, &tile);
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
        (&bar)->~barrier();
    }
}

// Adds one to every number, in contiguous runs of 256 numbers.
__global__ void plus_one_in_runs(const int* x, int* out) {
    __shared__ alignas(16) int run[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(run, x + 256 * blockIdx.x, cuda::aligned_size_t<16>(sizeof(run)), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(run));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) run[i] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_shared_to_global(out + 256 * blockIdx.x, run, sizeof(run));
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}

static CUtensorMap encode(const int* matrix, int height, int width) {
    CUtensorMap map{};
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    cuuint64_t size[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(height)};
    cuuint64_t stride[] = {width * sizeof(int)};
    cuuint32_t box[] = {kWidth, kHeight}, step[] = {1, 1};
    reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry)(
        &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, const_cast<int*>(matrix), size, stride, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}

// x, out [height, width]; width a multiple of 4
extern "C" void run_boxes(const int* x, int* out, int height, int width, cudaStream_t stream) {
    dim3 grid((width + kWidth - 1) / kWidth, (height + kHeight - 1) / kHeight);
    plus_one<<<grid, 64, 0, stream>>>(encode(x, height, width), encode(out, height, width));
}

// x, out [runs, 256]
extern "C" void run_runs(const int* x, int* out, int runs, cudaStream_t stream) {
    plus_one_in_runs<<<runs, 64, 0, stream>>>(x, out);
}
