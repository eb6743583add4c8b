// A block resets a sum by a volatile write, which is not atomic: the value depends on whether another block adds before
// or after it.
// n = 20, clear<<<1, n>>>(out, n); sum<<<n, 1>>>(x, out, n)
__global__ void clear(float* out, int n) { out[threadIdx.x] = 0; }

__global__ void sum(const float* x, float* out, int n) {
    volatile float* total = out;
    if (blockIdx.x == 7) {
#ifdef CLEAN
        atomicExch(out, 100.0f);
#else
        *total = 100;  // expected finding: between_blocks
#endif
    } else {
        atomicAdd(out, 1 + x[blockIdx.x] * x[blockIdx.x]);  // expected finding: between_blocks
    }
    if (blockIdx.x > 0) out[blockIdx.x] = *total > 0 ? 1 : 2;
}
