// A block passes a value to the next one through a volatile flag, without a fence between value and flag.
// n = 64, clear<<<1, 64>>>(); chain<<<n, 1>>>(x, out, n)
__device__ volatile int ready[64];

__global__ void chain(const float* x, float* out, int n) {
    const int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        while (ready[b - 1] == 0) {
        }
        __threadfence();
        before = out[b - 1];  // expected finding: between_blocks
    }
    out[b] = before + x[b];  // expected finding: between_blocks
#ifdef CLEAN
    __threadfence();
#endif
    ready[b] = 1;
}

__global__ void clear() { ready[threadIdx.x] = 0; }
