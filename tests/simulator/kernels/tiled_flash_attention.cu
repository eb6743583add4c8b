// Flash attention in float32 with tiles of 64 queries and 64 keys: one thread for each query row.
// q, k, v, out are (batch, heads, length, 64).
#include <cfloat>
#include <cuda_runtime.h>

constexpr int HEAD_DIM = 64;
constexpr int TILE = 64;

__global__ void flash_attention_kernel(const float* q, const float* k, const float* v, float* out, int length,
                                       float scale) {
    __shared__ float keys[TILE][HEAD_DIM];
    __shared__ float values[TILE][HEAD_DIM];
    const long long head = blockIdx.y * static_cast<long long>(length) * HEAD_DIM;
    const int row = blockIdx.x * TILE + threadIdx.x;

    float query[HEAD_DIM];
    float sum[HEAD_DIM];
    for (int d = 0; d < HEAD_DIM; ++d) {
        query[d] = row < length ? q[head + row * HEAD_DIM + d] * scale : 0.0f;
        sum[d] = 0.0f;
    }
    float largest = -FLT_MAX;
    float total = 0.0f;
    for (int first = 0; first < length; first += TILE) {
        for (int i = threadIdx.x; i < TILE * HEAD_DIM; i += TILE) {
            const int key = first + i / HEAD_DIM;
            keys[i / HEAD_DIM][i % HEAD_DIM] = key < length ? k[head + key * HEAD_DIM + i % HEAD_DIM] : 0.0f;
            values[i / HEAD_DIM][i % HEAD_DIM] = key < length ? v[head + key * HEAD_DIM + i % HEAD_DIM] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < TILE && first + j < length; ++j) {
            float score = 0.0f;
            for (int d = 0; d < HEAD_DIM; ++d) score += query[d] * keys[j][d];
            const float larger = fmaxf(largest, score);
            const float correction = __expf(largest - larger);
            const float weight = __expf(score - larger);
            total = total * correction + weight;
            for (int d = 0; d < HEAD_DIM; ++d) sum[d] = sum[d] * correction + weight * values[j][d];
            largest = larger;
        }
        __syncthreads();
    }
    if (row < length) {
        for (int d = 0; d < HEAD_DIM; ++d) out[head + row * HEAD_DIM + d] = sum[d] / total;
    }
}

extern "C" void tiled_flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                      int length, float scale, cudaStream_t stream) {
    const dim3 grid((length + TILE - 1) / TILE, batch * heads);
    flash_attention_kernel<<<grid, TILE, 0, stream>>>(q, k, v, out, length, scale);
}
