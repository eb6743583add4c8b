// The thread count of a named barrier must be a multiple of 32, which 40 is not.
// n = 64, wait<<<1, 64>>>(x, out, n)
__global__ void wait(const float* x, float* out, int n) {
#ifdef CLEAN
    const int threads = 64;
#else
    const int threads = 40;
#endif
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");  // expected finding: barrier_threads_invalid
    out[threadIdx.x] = x[threadIdx.x];
}
