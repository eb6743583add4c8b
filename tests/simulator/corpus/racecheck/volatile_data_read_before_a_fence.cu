// One thread of each block counts under a lock, and reads the counter again without it. The read is directly before a
// fence, but no thread polls the counter, so it is data.
// n = 20, clear<<<1, n>>>(out, n); count<<<n, 1>>>(x, out, n)
__device__ int lock;

__global__ void clear(float* out, int n) { out[threadIdx.x] = 0; }

__device__ void take() {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
}

__device__ void give() {
    __threadfence();
    atomicExch(&lock, 0);
}

__global__ void count(const float* x, volatile float* out, int n) {
    take();
    const float before = out[0];
    out[0] = before + x[blockIdx.x];  // expected finding: between_blocks
    give();
#ifdef CLEAN
    take();
    const float seen = out[0];
    give();
#else
    const float seen = out[0];  // expected finding: between_blocks
    __threadfence();
#endif
    if (blockIdx.x > 0) out[blockIdx.x] = seen;
}
