// A named barrier expects 64 threads, but only 32 reach it.
// n = 64, hand_over<<<1, 64>>>(x, out, n)
__global__ void hand_over(const float* x, float* out, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 32) {
#ifdef CLEAN
        asm volatile("bar.sync 1, 32;" ::: "memory");
#else
        asm volatile("bar.sync 1, 64;" ::: "memory");  // expected finding: deadlock
#endif
    }
    __syncthreads();  // expected finding: deadlock
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
