// Writers take the lock, but a reader does not.
// clear<<<1, 128>>>(out, n); count<<<20, 32>>>(x, out, n)
__device__ int lock;

__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}

__device__ void take() {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
}

__device__ void give() {
    __threadfence();
    atomicExch(&lock, 0);
}

__global__ void count(const float* x, float* out, int n) {
    if (threadIdx.x != 0) return;
    take();
    out[0] += x[blockIdx.x];  // expected finding: between_blocks
    give();
#ifdef CLEAN
    take();
    const float seen = out[0];
    give();
#else
    const float seen = out[0];  // expected finding: between_blocks
#endif
    out[1 + blockIdx.x] = seen;
}
