// Transpose: out[c, r] = in[r, c], through a tile in shared memory so that both sides move whole sectors.
#include <cuda_runtime.h>

constexpr int kTile = 32;
constexpr int kBlockRows = 8;  // a block of 32 x 8 threads moves a tile of 32 x 32, four rows per thread

// in: [rows, cols]   out: [cols, rows]
__global__ void transpose_kernel(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    // One column of padding: a column of the tile is then in 32 different banks instead of one.
    __shared__ float tile[kTile][kTile + 1];
    const int tiles_across = (cols + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int col0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;

    // Read rows: neighboring threads read neighboring columns.
    for (int y = threadIdx.y; y < kTile; y += kBlockRows) {
        const int row = row0 + y, col = col0 + threadIdx.x;
        if (row < rows && col < cols) tile[y][threadIdx.x] = in[static_cast<long long>(row) * cols + col];
    }
    __syncthreads();
    // Write columns: neighboring threads take neighboring rows of `in`, which are neighbors in `out`.
    for (int y = threadIdx.y; y < kTile; y += kBlockRows) {
        const int row = row0 + threadIdx.x, col = col0 + y;
        if (row < rows && col < cols) out[static_cast<long long>(col) * rows + row] = tile[threadIdx.x][y];
    }
}

// in: [rows, cols]   out: [cols, rows]
extern "C" void transpose(const float* in, float* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((cols + kTile - 1LL) / kTile);
    transpose_kernel<<<static_cast<unsigned>(tiles), dim3(kTile, kBlockRows), 0, stream>>>(in, out, rows, cols);
}
