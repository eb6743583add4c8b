// A block writes a weight, and the other blocks read it in each iteration of a loop. They do not wait until it changes.
// n = 20, clear<<<1, 1>>>(); sum<<<n, 1>>>(x, out, n)
__device__ volatile float weight;
__device__ volatile int ready;

__global__ void clear() {
    weight = 0;
    ready = 0;
}

__global__ void sum(const float* x, float* out, int n) {
    if (blockIdx.x == 0) {
        weight = x[0];  // expected finding: between_blocks
#ifdef CLEAN
        __threadfence();
#endif
        ready = 1;
        out[0] = 0;
        return;
    }
    while (ready == 0) {
    }
#ifdef CLEAN
    __threadfence();
#endif
    float total = 0;
    for (int i = 0; i < 3; ++i) total += weight * x[i];  // expected finding: between_blocks
    out[blockIdx.x] = total;
}
