// Warps of a block use a lock without fences, so accesses may move out of the locked section.
// n = 128, add<<<1, n>>>(x, out, n)
__global__ void add(const float* x, float* out, int n) {
    __shared__ int lock;
    __shared__ float sum;
    if (threadIdx.x == 0) {
        lock = 0;
        sum = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
#ifdef CLEAN
        __threadfence_block();
#endif
        sum += x[threadIdx.x];  // expected finding: within_block
#ifdef CLEAN
        __threadfence_block();
#endif
        atomicExch(&lock, 0);
    }
    __syncthreads();
    out[threadIdx.x] = sum;
}
