// Every block increments a counter and then reads it with an ordinary load. Only the last block may do that, because
// all others have finished; for the other blocks the load is a race.
// n = 96, clear<<<1, 1>>>(); draw<<<3, n / 3>>>(out, n)
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
