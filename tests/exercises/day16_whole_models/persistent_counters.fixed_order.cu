// The MLP in one launch without a queue: block b computes tiles b, b + gridDim.x, ... Each block may wait for a block
// with a larger number, so all blocks must be resident: a cooperative launch guarantees that.
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "llmk/persistent.cuh"

constexpr int kRows = llmk::kTileRows;
constexpr int kColumns = llmk::kTileColumns;

using Counter = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

__global__ void __launch_bounds__(llmk::kTileThreads)
    mlp(const float* x, const float* up, const float* down, float* inside, float* out, unsigned* state, int rows,
        int hidden, int feed_forward) {
    const int bands = (rows + kRows - 1) / kRows;
    const int inner = (feed_forward + kColumns - 1) / kColumns, outer = (hidden + kColumns - 1) / kColumns;
    for (int tile = blockIdx.x; tile < bands * inner; tile += gridDim.x) {
        const int band = tile % bands;  // neighboring blocks have different rows
        const size_t row = static_cast<size_t>(band) * kRows;
        llmk::compute_tile<true>(x + row * hidden, up, inside + row * feed_forward, min(kRows, rows - band * kRows),
                                 tile / bands * kColumns, feed_forward, hidden);
        __syncthreads();
        if (threadIdx.x == 0) Counter(state[band]).fetch_add(1, cuda::memory_order_release);
    }
    for (int tile = blockIdx.x; tile < bands * outer; tile += gridDim.x) {
        const int band = tile % bands;
        // Every thread waits for itself, so no barrier is needed after the wait.
        while (Counter(state[band]).load(cuda::memory_order_acquire) < static_cast<unsigned>(inner)) {
        }
        const size_t row = static_cast<size_t>(band) * kRows;
        llmk::compute_tile<false>(inside + row * feed_forward, down, out + row * hidden,
                                  min(kRows, rows - band * kRows), tile / bands * kColumns, hidden, feed_forward);
    }
}

extern "C" void persistent_counters(const float* x, const float* up, const float* down, float* inside, float* out,
                                    unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaMemsetAsync(state, 0, rows * sizeof(unsigned), stream);
    void* arguments[] = {&x, &up, &down, &inside, &out, &state, &rows, &hidden, &feed_forward};
    cudaLaunchCooperativeKernel(mlp, dim3(processors), dim3(llmk::kTileThreads), arguments, 0, stream);
}
