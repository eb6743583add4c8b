// One box of a matrix as TMA writes it to shared memory, and its matrix descriptors for wgmma.
//
//   x: [rows, columns]     raw: [8, 64], the bytes of shared memory in order     descriptors: [4]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 8, kColumns = 64;

__global__ void fetch_box(const __grid_constant__ CUtensorMap map, __half* raw, long long* descriptors, int row,
                          int column) {
    __shared__ __align__(1024) __half box[kRows * kColumns];
    __shared__ uint64_t arrived;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&arrived, 1);
        llmk::fence_mbarrier_init();
        llmk::mbarrier_arrive_expect_tx(&arrived, sizeof(box));
        llmk::tma_load(box, &map, &arrived, column, row, 0);
    }
    __syncthreads();
    llmk::mbarrier_wait_parity(&arrived, 0);
    for (int i = threadIdx.x; i < kRows * kColumns; i += blockDim.x) raw[i] = box[i];
    if (threadIdx.x == 0) {
        for (int step = 0; step < 4; ++step) {
            descriptors[step] =
                static_cast<long long>(llmk::make_smem_desc(box) + 2 * step - llmk::shared_address(box) / 16);
        }
    }
}

// Copy the box whose first element is x[row, column]. descriptors[i] is for its columns 16 i to 16 i + 15, as if it lay
// at address 0.
extern "C" void box_of(const __half* x, __half* raw, long long* descriptors, int rows, int columns, int row, int column,
                       cudaStream_t stream) {
    CUtensorMap map;
    if (llmk::make_tensor_map(&map, x, columns, rows, 1, columns, 8, kRows) != cudaSuccess) return;
    fetch_box<<<1, 32, 0, stream>>>(map, raw, descriptors, row, column);
}
