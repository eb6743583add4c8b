// One warp fills a ring of two tiles for three consuming warps; each slot has a "full" and an "empty" barrier.
// n = 1024, ring<<<1, 128>>>(x, out, n)
__device__ void wait(int barrier) { asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory"); }
__device__ void tell(int barrier) { asm volatile("bar.arrive %0, 128;" ::"r"(barrier) : "memory"); }

__global__ void ring(const float* x, float* out, int n) {
    __shared__ float tile[2][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = n / 32;
    if (warp == 0) {
        for (int i = 0; i < count; ++i) {
            if (i >= 2) wait(3 + i % 2);
            tile[i % 2][lane] = x[32 * i + lane];
            tell(1 + i % 2);
        }
    } else {
        for (int i = 0; i < count; ++i) {
            wait(1 + i % 2);
            const float value = tile[i % 2][31 - lane];
            if (i + 2 < count) tell(3 + i % 2);
            if (i % 3 == warp - 1) out[32 * i + lane] = value;
        }
    }
}
