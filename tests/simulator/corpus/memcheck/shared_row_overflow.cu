// A column index is past the end of its row, so it accesses the next row of the tile.
// transpose<<<(n + 255) / 256, 256>>>(x, out, n)
__global__ void transpose(const float* x, float* out, int n) {
    __shared__ float tile[8][32];
    const int row = threadIdx.x / 32, column = threadIdx.x % 32;
    const int i = blockIdx.x * 256 + threadIdx.x;
    tile[row][column] = i < n ? x[i] : 0.0f;
    __syncthreads();
#ifdef CLEAN
    const float value = tile[threadIdx.x % 8][threadIdx.x / 8];
#else
    const float value = tile[threadIdx.x % 7][threadIdx.x / 7];  // expected finding: index_out_of_bounds
#endif
    if (i < n) out[i] = value;
}
