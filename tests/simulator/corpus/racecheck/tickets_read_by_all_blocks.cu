// The block that draws the last ticket may read the counter with an ordinary load and reset it, because all others have
// finished. No other block may do so, not even after its own ticket.
// n = 96 elements
#include <cuda_runtime.h>

__device__ int tickets;

__global__ void clear() { tickets = 0; }

__global__ void draw(float* out, int n) {
    __shared__ int seen;
    if (threadIdx.x == 0) {
        __threadfence();
        const bool last = atomicAdd(&tickets, 1) == gridDim.x - 1;  // expected finding: between_blocks
        __threadfence();
        seen = 0;
#ifdef CLEAN
        if (last) {
            seen = tickets;
            tickets = 0;
        }
#else
        if (!last || n > 0) seen = tickets;  // expected finding: between_blocks
#endif
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 1, 0, stream>>>();
    draw<<<3, n / 3, 0, stream>>>(out, n);
}
