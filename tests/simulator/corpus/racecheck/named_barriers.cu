// Warp 0 fills a tile and warp 1 reads it. They need two named barriers, "full" and "empty". Without "empty" warp 0
// overwrites the tile while warp 1 reads it.
// n = 512, hand_over<<<1, 64>>>(x, out, n)
__device__ void wait(int barrier) { asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory"); }
__device__ void tell(int barrier) { asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory"); }

__global__ void hand_over(const float* x, float* out, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x % 32;
    for (int first = 0; first < n; first += 32) {
        if (threadIdx.x < 32) {
#ifdef CLEAN
            if (first > 0) wait(2);
            tile[lane] = x[first + lane];
            tell(1);
#else
            tile[lane] = x[first + lane];  // expected finding: within_block
            wait(1);
#endif
        } else {
            wait(1);
            out[first + lane] = tile[31 - lane];  // expected finding: within_block
#ifdef CLEAN
            if (first + 32 < n) tell(2);
#endif
        }
    }
}
