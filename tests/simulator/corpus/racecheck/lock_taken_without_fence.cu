// After taking a lock, a fence is needed so that later reads do not return old values.
// clear<<<1, 128>>>(out, n); count<<<20, 32>>>(x, out, n)
__device__ int lock;

__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}

__global__ void count(const float* x, float* out, int n) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
#ifdef CLEAN
    __threadfence();
#endif
    out[0] = out[0] + x[blockIdx.x];  // expected finding: between_blocks
    __threadfence();
    atomicExch(&lock, 0);
}
