// Computes c = a b for square matrices: one thread per element of c, and tiles of 16 x 16 in shared memory.
#include <cuda_runtime.h>

constexpr int TILE = 16;

__global__ void product_kernel(const float* a, const float* b, float* c, int n) {
    __shared__ float left[TILE][TILE];
    __shared__ float right[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        left[threadIdx.y][threadIdx.x] = row < n && first + threadIdx.x < n ? a[row * n + first + threadIdx.x] : 0.0f;
        right[threadIdx.y][threadIdx.x] =
            first + threadIdx.y < n && column < n ? b[(first + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" void tiled_product(const float* a, const float* b, float* c, int n, cudaStream_t stream) {
    const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    product_kernel<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, n);
}
