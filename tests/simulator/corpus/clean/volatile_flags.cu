// Blocks synchronize through volatile accesses: a flag between fences, a word that all blocks set to the same value, a
// word that a block polls, and a word to which another block adds atomically.
// n = 16, clear<<<1, n>>>(); chain<<<n, 1>>>(x, out, n)
__device__ volatile int ready[16], large, stop;
__device__ int finished;

__global__ void clear() {
    ready[threadIdx.x] = 0;
    if (threadIdx.x == 0) large = stop = finished = 0;
}

__global__ void chain(const float* x, float* out, int n) {
    const int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        while (ready[b - 1] == 0) {
        }
        __threadfence();
        before = out[b - 1];
    }
    out[b] = before + x[b];
    __threadfence();
    ready[b] = 1;
    if (x[b] > 3) large = 1;
    atomicAdd(&finished, 1);
    if (b == 0) {
        while (*static_cast<volatile int*>(&finished) < n) {
        }
        stop = 1;
    }
    if (b == 1) {
        while (!stop) {
        }
    }
}
