// Each thread copies with its own cuda::pipeline of two stages. A barrier precedes reads of other threads' copies.
// n = 1024, stream_tiles<<<1, 128>>>(x, out, n)
#include <cuda/pipeline>

__global__ void stream_tiles(const float* x, float* out, int n) {
    __shared__ float tile[2][128];
    auto pipe = cuda::make_pipeline();
    const int t = threadIdx.x, count = n / 128;
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[0][t], &x[t], sizeof(float), pipe);
    pipe.producer_commit();
    for (int i = 0; i < count; ++i) {
        if (i + 1 < count) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[(i + 1) % 2][t], &x[(i + 1) * 128 + t], sizeof(float), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        out[i * 128 + t] = tile[i % 2][127 - t];
        __syncthreads();
        pipe.consumer_release();
    }
}
