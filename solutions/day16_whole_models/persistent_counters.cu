// A two-layer MLP in one launch: out = down silu(up x), for a few rows. Blocks take tiles from a queue, and a tile waits
// only for the tiles whose results it reads.
//
//   x, out: [rows, hidden]      inside: [rows, feed_forward]
//   up: [feed_forward, hidden]      down: [hidden, feed_forward]
//   state: [1 + rows], the queue, then a counter for each band of rows
//
// A tile has llmk::kTileRows rows, a band, and llmk::kTileColumns columns. A tile of out reads its whole band of inside,
// which several tiles have computed.
#include <cuda_runtime.h>

#include "llmk/persistent.cuh"

constexpr int kRows = llmk::kTileRows;
constexpr int kColumns = llmk::kTileColumns;

__global__ void __launch_bounds__(llmk::kTileThreads)
    mlp(const float* x, const float* up, const float* down, float* inside, float* out, unsigned* state, int rows,
        int hidden, int feed_forward) {
    __shared__ int shared_tile;
    const int bands = (rows + kRows - 1) / kRows;
    const int inner = (feed_forward + kColumns - 1) / kColumns;  // tiles of a band of inside
    const int outer = (hidden + kColumns - 1) / kColumns;        // tiles of a band of out
    unsigned* finished = state + 1;  // for each band, the number of its tiles of inside that are complete
    for (;;) {
        __syncthreads();  // all threads have read the previous number
        if (threadIdx.x == 0) shared_tile = static_cast<int>(atomicAdd(state, 1u));
        __syncthreads();
        const bool second = shared_tile >= bands * inner;
        const int tile = second ? shared_tile - bands * inner : shared_tile;
        const int band = tile / (second ? outer : inner), column = tile % (second ? outer : inner) * kColumns;
        if (band >= bands) return;

        const int count = min(kRows, rows - band * kRows);
        const size_t row = static_cast<size_t>(band) * kRows;
        if (!second) {
            llmk::compute_tile<true>(x + row * hidden, up, inside + row * feed_forward, count, column, feed_forward,
                                     hidden);
            __syncthreads();  // all threads have stored their results
            if (threadIdx.x == 0) llmk::red_release_add(finished + band, 1);
        } else {
            if (threadIdx.x == 0) {
                while (llmk::ld_acquire(finished + band) < static_cast<unsigned>(inner)) {
                }
            }
            __syncthreads();  // no thread reads before thread 0 has seen the counter
            llmk::compute_tile<false>(inside + row * feed_forward, down, out + row * hidden, count, column, hidden,
                                      feed_forward);
        }
    }
}

extern "C" void persistent_counters(const float* x, const float* up, const float* down, float* inside, float* out,
                                    unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaMemsetAsync(state, 0, (1 + static_cast<size_t>(rows)) * sizeof(unsigned), stream);
    mlp<<<processors, llmk::kTileThreads, 0, stream>>>(x, up, down, inside, out, state, rows, hidden, feed_forward);
}
