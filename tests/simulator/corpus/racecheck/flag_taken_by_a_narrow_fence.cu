// The reader of another block's flag executes a fence of block scope, but it needs device scope, as the writer does.
// n = 64, clear<<<1, 64>>>(); chain<<<n, 1>>>(x, out, n)
__device__ int ready[64];

__global__ void clear() { ready[threadIdx.x] = 0; }

__global__ void chain(const float* x, float* out, int n) {
    const int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        while (atomicAdd(&ready[b - 1], 0) == 0) {
        }
#ifdef CLEAN
        __threadfence();
#else
        __threadfence_block();
#endif
        before = out[b - 1];  // expected finding: between_blocks
    }
    out[b] = before + x[b];  // expected finding: between_blocks
    __threadfence();
    atomicExch(&ready[b], 1);
}
