// Two threads take two locks in opposite order, so each waits for the other.
// n = 64, open<<<1, 2>>>(); cross<<<1, 64>>>(x, out, n)
__device__ int locks[2];

__device__ void take(int* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {  // expected finding: infinite_loop
    }
    __threadfence();
}

__device__ void give(int* lock) {
    __threadfence();
    atomicExch(lock, 0);
}

__global__ void cross(const float* x, float* out, int n) {
    const int side = threadIdx.x / 32;
#ifdef CLEAN
    const int first = 0;
#else
    const int first = side;
#endif
    if (threadIdx.x % 32 == 0) take(&locks[first]);
#ifndef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x % 32 == 0) {
        take(&locks[1 - first]);
        out[0] = x[0];
        give(&locks[1 - first]);
        give(&locks[first]);
    }
    __syncthreads();
    if (side == 1 || threadIdx.x > 0) out[threadIdx.x] = x[threadIdx.x];
}

__global__ void open() { locks[threadIdx.x] = 0; }
