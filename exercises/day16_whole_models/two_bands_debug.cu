// A two-layer MLP in one launch, out = down silu(up x), whose intermediate values have room for two bands of rows only.
//
//   x, out: [rows, hidden]      inside: [2, 4, feed_forward], a ring of two bands
//   up: [feed_forward, hidden]      down: [hidden, feed_forward]
//   state: [1 + rows], the queue, then a counter for each band
//
// Blocks take tiles of 4 rows by 32 columns from a queue. Step s of the queue has the tiles of band s of inside, then
// those of band s - 1 of out. A block that completes a tile adds 1 to the counter of the tile's band.
//
// It has one fault. Find it from the report, and correct it.
#include <cuda_runtime.h>

#include "llmk/persistent.cuh"

constexpr int kRows = llmk::kTileRows;
constexpr int kColumns = llmk::kTileColumns;
constexpr int kSlots = 2;  // bands of inside that exist at once

// Wait until the counter has reached `count`. All threads of the block call it.
__device__ void wait_for(const unsigned* counter, int count) {
    if (threadIdx.x == 0) {
        while (llmk::ld_acquire(counter) < static_cast<unsigned>(count)) {
        }
    }
    __syncthreads();
}

__global__ void __launch_bounds__(llmk::kTileThreads)
    mlp(const float* x, const float* up, const float* down, float* inside, float* out, unsigned* state, int rows,
        int hidden, int feed_forward) {
    __shared__ int ticket;
    const int bands = (rows + kRows - 1) / kRows;
    const int inner = (feed_forward + kColumns - 1) / kColumns, outer = (hidden + kColumns - 1) / kColumns;
    unsigned* finished = state + 1;  // for each band, the number of its tiles that are complete
    for (;;) {
        if (threadIdx.x == 0) ticket = static_cast<int>(atomicAdd(state, 1u));
        __syncthreads();
        const int step = ticket / (inner + outer), tile = ticket % (inner + outer);
        __syncthreads();  // all threads have read the number
        if (step > bands) return;

        const bool second = tile >= inner;
        const int band = second ? step - 1 : step;
        if (band < 0 || band >= bands) continue;  // the first step has no band of out, the last step no band of inside
        const size_t row = static_cast<size_t>(band) * kRows;
        const int count = min(kRows, rows - band * kRows);
        float* slot = inside + static_cast<size_t>(band % kSlots) * kRows * feed_forward;
        if (!second) {
            if (band >= kSlots) wait_for(finished + band - kSlots, inner);  // the slot is free
            llmk::compute_tile<true>(x + row * hidden, up, slot, count, tile * kColumns, feed_forward, hidden);
        } else {
            wait_for(finished + band, inner);
            llmk::compute_tile<false>(slot, down, out + row * hidden, count, (tile - inner) * kColumns, hidden,
                                      feed_forward);
        }
        __syncthreads();  // all threads have read and stored
        if (threadIdx.x == 0) llmk::red_release_add(finished + band, 1);
    }
}

extern "C" void two_bands_debug(const float* x, const float* up, const float* down, float* inside, float* out,
                                unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaMemsetAsync(state, 0, (1 + static_cast<size_t>(rows)) * sizeof(unsigned), stream);
    mlp<<<processors, llmk::kTileThreads, 0, stream>>>(x, up, down, inside, out, state, rows, hidden, feed_forward);
}
