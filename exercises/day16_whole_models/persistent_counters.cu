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
    // TODO: Until the queue is empty, thread 0 takes a tile (atomicAdd on state[0]) and passes it to the block. For a
    // TODO: tile of inside, add 1 to the counter of its band when all threads have stored their results. For a tile of
    // TODO: out, first wait until that counter has reached the number of tiles of its band of inside.
}

extern "C" void persistent_counters(const float* x, const float* up, const float* down, float* inside, float* out,
                                    unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    // TODO: clear the words of state, and launch one block per multiprocessor.
}
