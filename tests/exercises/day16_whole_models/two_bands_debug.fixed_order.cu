// The MLP with a ring of two bands, without a queue: block b computes tiles b, b + gridDim.x, ... of each band. A counter
// per slot counts all tiles that have ever used it, of both layers.
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "llmk/persistent.cuh"

constexpr int kRows = llmk::kTileRows;
constexpr int kColumns = llmk::kTileColumns;
constexpr int kSlots = 2;

using Counter = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

__device__ void wait_for(unsigned& counter, int count) {
    while (Counter(counter).load(cuda::memory_order_acquire) < static_cast<unsigned>(count)) {
    }
}

__global__ void __launch_bounds__(llmk::kTileThreads)
    mlp(const float* x, const float* up, const float* down, float* inside, float* out, unsigned* used, int rows,
        int hidden, int feed_forward) {
    const int bands = (rows + kRows - 1) / kRows;
    const int inner = (feed_forward + kColumns - 1) / kColumns, outer = (hidden + kColumns - 1) / kColumns;
    for (int band = 0; band < bands; ++band) {
        const int slot = band % kSlots, count = min(kRows, rows - band * kRows);
        const int before = band / kSlots * (inner + outer);  // tiles of earlier bands in this slot
        const size_t row = static_cast<size_t>(band) * kRows;
        float* own = inside + static_cast<size_t>(slot) * kRows * feed_forward;
        for (int tile = blockIdx.x; tile < inner; tile += gridDim.x) {
            wait_for(used[slot], before);
            llmk::compute_tile<true>(x + row * hidden, up, own, count, tile * kColumns, feed_forward, hidden);
            __syncthreads();
            if (threadIdx.x == 0) Counter(used[slot]).fetch_add(1, cuda::memory_order_release);
        }
        for (int tile = blockIdx.x; tile < outer; tile += gridDim.x) {
            wait_for(used[slot], before + inner);
            llmk::compute_tile<false>(own, down, out + row * hidden, count, tile * kColumns, hidden, feed_forward);
            __syncthreads();
            if (threadIdx.x == 0) Counter(used[slot]).fetch_add(1, cuda::memory_order_release);
        }
    }
}

extern "C" void two_bands_debug(const float* x, const float* up, const float* down, float* inside, float* out,
                                unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaMemsetAsync(state, 0, kSlots * sizeof(unsigned), stream);
    void* arguments[] = {&x, &up, &down, &inside, &out, &state, &rows, &hidden, &feed_forward};
    cudaLaunchCooperativeKernel(mlp, dim3(processors), dim3(llmk::kTileThreads), arguments, 0, stream);
}
